#!/bin/sh
# models.sh takes full-size slices of every synthetic model through the command, by bytes, and prints one line each:
# synth, compress, test, list, inspect, decompress, and a comparison of every file.
#   bench/models.sh [LAYERS] [DIRECTORY] [MODEL...]
# It needs about 2.7 times the size of the largest slice in DIRECTORY (default: the system's temporary directory).
set -eu
layers=${1:-2}
work=$(mktemp -d "${2:-${TMPDIR:-/tmp}}/wcodec-models.XXXXXX")
trap 'rm -rf "$work"' EXIT INT TERM
[ $# -le 2 ] && set -- "$layers" "$work" $(go run ./cmd/wcodec synth --help | sed -n "s/^Models: //p" | tr -d ",.")
shift 2
go build -o "$work/wcodec" ./cmd/wcodec
w="$work/wcodec --no-progress"
printf '%-18s %14s %14s %7s %7s\n' model plain stored ratio dense
for model in "$@"; do
	case $model in
	edge | tiny) $w synth -q --model "$model" -o "$work/in" ;; # these have no layers
	*) $w synth -q --model "$model" --layers "$layers" -o "$work/in" ;;
	esac
	$w compress -q -o "$work/packed" "$work/in"
	$w test -q "$work"/packed/*.wcodec
	for f in "$work"/packed/*.wcodec; do
		$w list --json "$f" >/dev/null
		name=$($w list --all "$f" | awk '$1 == 1 {print $2; exit}')
		$w inspect "$f" "$name" >/dev/null
	done
	dense=$($w compress --dry-run --json --level dense "$work/in" | tr ',' '\n' | awk -F: '/"stored_bytes"/ {print $2; exit}')
	$w decompress -q -o "$work/back" "$work/packed"
	diff -r "$work/in" "$work/back"
	plain=$(cat "$work"/in/* | wc -c)
	stored=$(cat "$work"/packed/* | wc -c)
	awk -v m="$model" -v p="$plain" -v s="$stored" -v d="$dense" \
		'BEGIN {printf "%-18s %14.0f %14.0f %7.4f %7.4f\n", m, p, s, p/s, p/d}'
	rm -rf "$work/in" "$work/packed" "$work/back"
done
