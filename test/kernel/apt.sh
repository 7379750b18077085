# SPDX-License-Identifier: MIT
# Sourced: apt in a folder of its own, $cache/apt. Nothing is installed on this machine.
mirror=${GP_DEBIAN_MIRROR:-http://deb.debian.org/debian}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

say() { echo "kernel tree: $*" >&2; }
private_apt() {
	command=$1
	shift
	"$command" -o Dir::Etc::sourcelist="$cache/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::State::lists="$cache/apt/lists" -o Dir::Cache="$cache/apt/cache" -o APT::Sandbox::User=root "$@"
}
apt_lists() {
	mkdir -p "$cache/apt/lists/partial" "$cache/apt/cache/archives/partial" "$cache/debs"
	echo "deb [signed-by=$keyring] $mirror bookworm-backports main" >"$cache/apt/sources.list"
	if ! private_apt apt-get -qq update >&2; then
		say "cannot read the package lists of $mirror; is the network there?"
		return 77
	fi
}
