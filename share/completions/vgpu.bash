# SPDX-License-Identifier: MIT
# bash completion for vgpu(1). test/e2e/cli_docs checks that it lists every command and option.
_vgpu() {
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} i
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		mapfile -t COMPREPLY < <(compgen -W "run start ls stop fault cdi --help --version" -- "$current")
		return
	fi
	# Behind -- is another command line.
	for ((i = 2; i < COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]} == -- ]]; then
			if declare -F _command_offset >/dev/null; then
				_command_offset $((i + 1))
			else
				mapfile -t COMPREPLY < <(compgen -c -f -- "$current")
			fi
			return
		fi
	done
	case $previous in
	-d | --device) mapfile -t COMPREPLY < <(compgen -W "mi300x mi300x-cpx mi308x mi210" -- "$current") ;;
	--front) mapfile -t COMPREPLY < <(compgen -W "fuse seccomp auto" -- "$current") ;;
	-k | --kernels | --root) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
	*) mapfile -t COMPREPLY < <(compgen -W "-d --device -n --gpus --dilate -k --kernels --param --name --front --root -v --verbose -h --help" -- "$current") ;;
	esac
}
complete -F _vgpu vgpu
