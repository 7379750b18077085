# SPDX-License-Identifier: MIT
# bash completion for gpreempt(1). test/e2e/cli_docs checks that it lists every option.
_gpreempt() {
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} i
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		mapfile -t COMPREPLY < <(compgen -W "account bench cdi doctor events get grant lab metrics pause record report resume run set sim status top help --help --version" -- "$current")
		return
	fi
	# Behind -- (or the first plain word, for run) is another command line.
	if [[ $command == run || $command == record ]]; then
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
	fi
	case $previous in
	-p | --priority | --ceiling)
		mapfile -t COMPREPLY < <(compgen -W "idle low normal high realtime" -- "$current")
		return
		;;
	-s | --sort)
		[[ $command == top ]] && mapfile -t COMPREPLY < <(compgen -W "pid priority gpu wait pending preemptions inversions" -- "$current")
		[[ $command == top ]] && return
		;;
	-o | --output | --perfetto | --from)
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
		return
		;;
	esac
	case $command in
	account) mapfile -t COMPREPLY < <(compgen -W "--by --tag --user --since --json -h --help -V --version" -- "$current") ;;
	bench) mapfile -t COMPREPLY < <(compgen -W "-g --gpu -o --output --base --rounds --force --json -h --help -V --version device" -- "$current") ;;
	cdi) mapfile -t COMPREPLY < <(compgen -W "-o --output --cdi-version --agent --preload --socket-dir -h --help -V --version" -- "$current") ;;
	doctor) mapfile -t COMPREPLY < <(compgen -W "--json -v --verbose -l --list -h --help -V --version device permissions kernel cwsr sched-policy safety max-processes slots processes hw-queues num-kcq copy-queues hip-priority nvidia daemon mechanism unmanaged log" -- "$current") ;;
	events) mapfile -t COMPREPLY < <(compgen -W "-f --follow --json --pid -g --gpu -h --help -V --version" -- "$current") ;;
	get) mapfile -t COMPREPLY < <(compgen -W "--json -h --help -V --version" -- "$current") ;;
	grant) mapfile -t COMPREPLY < <(compgen -W "-p --priority --ceiling --tag --share --weight --deadline --budget --protect --gang --for --force --json -q --quiet -h --help -V --version add list remove" -- "$current") ;;
	lab) mapfile -t COMPREPLY < <(compgen -f -W "list keys all fit --set --json --html --device --write -h --help -V --version" -- "$current") ;;
	metrics) mapfile -t COMPREPLY < <(compgen -W "--json -h --help -V --version" -- "$current") ;;
	pause) mapfile -t COMPREPLY < <(compgen -W "--json -h --help -V --version all" -- "$current") ;;
	record) mapfile -t COMPREPLY < <(compgen -W "-o --output --perfetto --duration --from --json -q --quiet -h --help -V --version" -- "$current") ;;
	report) mapfile -t COMPREPLY < <(compgen -f -W "--compare --device --from --html --json --perfetto --process --to --top --width -h --help -V --version" -- "$current") ;;
	resume) mapfile -t COMPREPLY < <(compgen -W "--json -h --help -V --version all" -- "$current") ;;
	run) mapfile -t COMPREPLY < <(compgen -W "-p --priority --share --weight --deadline --budget --protect --gang --hw-queues --stream-map --require --check -q --quiet -m --max --json -h --help -V --version" -- "$current") ;;
	set) mapfile -t COMPREPLY < <(compgen -W "-p --priority --share --weight --deadline --budget --protect --gang -g --gpu --queue --json -q --quiet -h --help -V --version" -- "$current") ;;
	sim) mapfile -t COMPREPLY < <(compgen -f -W "--compare --describe --device --devices --dilate --duration --gate --gate-cost --html --json --list --load --mix --perfetto --policy --request --rptr --seed --set --trace -h --help -V --version" -- "$current") ;;
	status) mapfile -t COMPREPLY < <(compgen -W "--json -s --short --hqd -h --help -V --version" -- "$current") ;;
	top) mapfile -t COMPREPLY < <(compgen -W "-d --delay -s --sort -q --queues -C --no-colour -b --batch -n --iterations --json -h --help -V --version" -- "$current") ;;
	help) mapfile -t COMPREPLY < <(compgen -W "account bench cdi doctor events get grant lab metrics pause record report resume run set sim status top" -- "$current") ;;
	*) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
	esac
}
complete -F _gpreempt gpreempt
