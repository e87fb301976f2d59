#!/bin/sh
# Links a program, and the same in LAB_LAYOUTS other orders of its functions beside target/release/NAME: NAME.1, NAME.2, ...
set -eu
cc "$@"
output= next=
for argument in "$@"; do
    [ -z "$next" ] || output=$argument
    next=
    [ "$argument" != -o ] || next=yes
done
case "$(basename "$output")" in
    peer_*-*) ;;
    *) exit 0 ;;
esac
name=$(basename "$output" | sed 's/-[0-9a-f]*$//; s/_/-/g')
for number in $(seq "${LAB_LAYOUTS:?}"); do
    cc "$@" -Wl,--shuffle-sections=.text*="$number" -o "$(dirname "$output")/../$name.$number"
done
