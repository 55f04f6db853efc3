#!/usr/bin/env bash
# Everything there is to learn on a machine with a GPU, in one command and one report. `./dev gpu-bundle`
# makes the folder that this file lies in; README.md says how to use it. Needs bash and coreutils alone.
# Exit status: 0 all passed, 1 something failed, 2 usage, 3 no CUDA device.
# shellcheck disable=SC2317 # check_NAME is called by its name
set -uo pipefail
export LC_ALL=C
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=$here/bin

usage() {
  cat <<'TEXT'
usage: run.sh --out DIR [--minutes N] [--conformance DIR] [--parity DIR] [--only NAME,...]

  --out DIR          where report.txt, report.json and logs.tar.gz go
  --minutes N        time for all checks together (default 9); those that do not fit are left out
  --conformance DIR  recorded calls of operators, for ops_conformance
  --parity DIR       folders gpt2 and llama of recorded training, for parity
  --only NAME,...    these checks alone
TEXT
}

bad_usage() {
  echo "run.sh: $*" >&2
  usage >&2
  exit 2
}

out='' minutes=9 conformance='' parity='' only=''
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help)
      usage
      exit 0
      ;;
    --out | --minutes | --conformance | --parity | --only)
      [ $# -ge 2 ] || bad_usage "$1 needs a value"
      printf -v "${1#--}" '%s' "$2"
      shift 2
      ;;
    *) bad_usage "unknown argument \"$1\"" ;;
  esac
done
[ -n "$out" ] || bad_usage "--out is missing"
[[ $minutes =~ ^[1-9][0-9]*$ ]] || bad_usage "--minutes: expected a whole number above 0, got \"$minutes\""

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out" "$work/logs"
out=$(cd "$out" && pwd)

# --- libraries -----------------------------------------------------------------------------------

# CUDA's libraries may lie where no linker looks: in a Python environment, say.
cuda_folders() {
  find /usr/lib /usr/local /opt "$HOME" -maxdepth 10 \
    \( -name 'libcublasLt.so.1[23]' -o -name 'libnccl.so.2' -o -name 'libcudnn.so.9' \
       -o -name 'libnvrtc.so.1[23]' \) \
    -not -path '*/stubs/*' -printf '%h\n' 2>/dev/null | sort -u | paste -sd: -
}
folders=$(cuda_folders)
export LOCKSTEP_CUDA_LIBRARIES=${LOCKSTEP_CUDA_LIBRARIES:-$folders}
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$LOCKSTEP_CUDA_LIBRARIES

# --- checks --------------------------------------------------------------------------------------

# A check is a line: name, seconds at most, what it shows. check_NAME runs it.
checks='machine|60|driver, GPU, processor, libraries found
device_tests|120|streams, events, memory and their limits (tests/device)
conformance|180|recorded calls of operators on cuda:0, and how many ran on the cpu instead
cuda_tests|180|kernels against the cpu (tests/cuda)
parity_gpt2|60|GPT-2 trained beside a recorded run
parity_llama|60|Llama trained beside a recorded run
train|60|the default training run on cuda:0
step_f32|60|GPT-2 124M, 8 x 1024 tokens a step, f32: tokens/s, memory
step_bf16|60|the same in bf16
step_f16|60|the same in f16 with a loss scale
kernels|60|bandwidth and FLOP/s of single operators
ddp_2_ranks|90|two ranks on one GPU, gradients summed through the memory of the cpu
nccl_1_rank|60|NCCL with a single rank (tests/device)
streams|60|time of launches, events and copies
stress_allocator|60|random programs over the allocator
stress_streams|60|random programs over streams
sanitizer|90|a short training run under the stream sanitizer'

step=(step "$here/configs/bench_gpt2.txtpb" --json --steps 10 --set device=cuda:0
  --set model.gpt2.vocab_size=50304 --set model.gpt2.context_length=1024
  --set train.batch_size=8 --set train.micro_batch_size=8)

check_machine() {
  nvidia-smi 2>&1 || echo "nvidia-smi: not there"
  uname -srm
  getconf GNU_LIBC_VERSION
  grep -m1 'model name' /proc/cpuinfo
  nproc
  echo "CUDA libraries in: ${folders:-no folder that was looked into}"
  "$bin/lockstep" doctor --run-dir "$work/runs"
}
check_device_tests() { "$bin/test_device" --gtest_brief=1 --gtest_filter='-Nccl*'; }
check_conformance() {
  [ -n "$conformance" ] || skip "no --conformance"
  "$bin/ops_conformance" "$conformance" --device cuda:0
}
check_cuda_tests() {
  [ -x "$bin/test_cuda" ] || skip "no test_cuda in this bundle"
  # What is left out asks a made-up cuBLASLt.
  "$bin/test_cuda" --gtest_brief=1 --gtest_filter='-*CublasLt*'
}
parity_of() {
  [ -n "$parity" ] || skip "no --parity"
  "$bin/parity" "$parity/$1" --device cuda:0 "${@:2}"
}
check_parity_gpt2() { parity_of gpt2; }
check_parity_llama() { parity_of llama; }
train() {
  local text=$here/data/kjv.txt
  [ -f "$text" ] || skip "no data/kjv.txt in this bundle"
  "$bin/lockstep" train "$here/configs/gpt_kjv.txtpb" --set device=cuda:0 --set data.text.path="$text" \
    --set data.text.held_out_bytes=65536 "$@"
}
check_train() { train --steps 300 --set train.eval_every=300 --run-dir "$work/train"; }
check_step_f32() { "$bin/lockstep" bench "${step[@]}" --precision F32; }
check_step_bf16() { "$bin/lockstep" bench "${step[@]}" --precision BF16_MIXED; }
check_step_f16() { "$bin/lockstep" bench "${step[@]}" --precision F16_MIXED; }
check_kernels() { "$bin/lockstep" bench kernels --device cuda:0; }
check_ddp_2_ranks() { parity_of gpt2 --ranks 2; }
check_nccl_1_rank() { "$bin/test_device" --gtest_filter='Nccl*'; }
check_streams() { "$bin/lockstep" bench streams --device cuda:0 --json; }
check_stress_allocator() { "$bin/lockstep" stress allocator --device cuda:0 --seconds 10; }
check_stress_streams() { "$bin/lockstep" stress streams --device cuda:0 --seconds 10; }
check_sanitizer() {
  LOCKSTEP_STREAM_SANITIZER=1 train --steps 5 --set train.eval_every=5 --run-dir "$work/sanitizer"
}

# --- running them --------------------------------------------------------------------------------

skip() {
  echo "$*"
  exit 77
}

# "text" as JSON has it.
quoted() {
  printf '"%s"' "$(printf '%s' "$1" | tr -d '\000-\010\013-\037' | sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' \
    -e 's/\t/\\t/g' | sed -e ':a' -e 'N' -e '$!ba' -e 's/\n/\\n/g')"
}

# What a log says in a line: the last that is not empty.
last_line() { grep -av '^[[:space:]]*$' "$1" | tail -n 1 | cut -c 1-300; }

json_entries=()
failed=0
begun=$(date +%s)

# record NAME STATUS SECONDS LOG
record() {
  local name=$1 status=$2 seconds=$3 log=$4 summary figures
  summary=$(last_line "$log")
  printf '%-10s %-17s %4s s  %s\n' "$status" "$name" "$seconds" "$summary" | tee -a "$work/table"
  figures=$(grep -aE '^\{.*\}$' "$log" | tail -n 1)
  json_entries+=("{\"name\": \"$name\", \"status\": \"$status\", \"seconds\": $seconds, \"summary\": $(quoted "$summary")${figures:+, \"figures\": $figures}}")
  case "$status" in failed | timeout) failed=1 ;; esac
}

# run NAME LIMIT
run() {
  local name=$1 limit=$2 left start status log=$work/logs/$1.log word
  start=$(date +%s)
  left=$((begun + minutes * 60 - start))
  if [ "$left" -lt 5 ]; then
    echo "no time left" >"$log"
    record "$name" skipped 0 "$log"
    return
  fi
  [ "$limit" -le "$left" ] || limit=$left
  # In a session of its own, which ends as a whole.
  (
    cd "$work" || exit 1
    "check_$name"
  ) >"$log" 2>&1 &
  wait_for $! "$limit"
  status=$?
  case $status in
    0) word=passed ;;
    77) word=skipped ;;
    124) word=timeout ;;
    *) word=failed ;;
  esac
  [ $word != failed ] || echo "exit status $status" >>"$log"
  [ $word != timeout ] || echo "stopped after $limit s" >>"$log"
  record "$name" "$word" $(($(date +%s) - start)) "$log"
}

# wait_for PID SECONDS: its exit status, or 124 after it and its children were ended.
wait_for() {
  local pid=$1 end=$(($(date +%s) + $2))
  while kill -0 "$pid" 2>/dev/null; do
    if [ "$(date +%s)" -ge "$end" ]; then
      kill -TERM -- "-$pid" 2>/dev/null
      sleep 2
      kill -KILL -- "-$pid" 2>/dev/null
      wait "$pid" 2>/dev/null
      return 124
    fi
    sleep 0.2
  done
  wait "$pid"
}

wanted() { [ -z "$only" ] || [[ ",$only," == *",$1,"* ]]; }

names=()
while IFS='|' read -r name limit shows; do names+=("$name|$limit|$shows"); done <<<"$checks"
if [ -n "$only" ]; then
  for name in ${only//,/ }; do
    [[ $'\n'"$checks" == *$'\n'"$name|"* ]] || bad_usage "--only: there is no check \"$name\""
  done
fi

reason=$("$bin/lockstep" doctor --run-dir "$work/runs" 2>&1 | grep -E '^[a-z]+ +CUDA ')
if [[ $reason != *"driver for CUDA"* ]]; then
  {
    echo "no CUDA device: ${reason:-lockstep doctor says nothing of CUDA}"
    echo "With one, these are run (seconds at most):"
    for each in "${names[@]}"; do
      IFS='|' read -r name limit shows <<<"$each"
      printf '  %-17s %4s  %s\n' "$name" "$limit" "$shows"
    done
  } | tee "$out/report.txt"
  printf '{"device": null, "reason": %s, "checks": []}\n' "$(quoted "$reason")" >"$out/report.json"
  exit 3
fi

set -m # each check is a process group
for each in "${names[@]}"; do
  IFS='|' read -r name limit shows <<<"$each"
  if wanted "$name"; then run "$name" "$limit"; fi
done
set +m

{
  cat "$here/version" 2>/dev/null
  echo "$reason"
  echo
  cat "$work/table"
  for log in "$work"/logs/*.log; do
    printf '\n=== %s\n' "$(basename "$log" .log)"
    tail -n 60 "$log" | cut -c 1-400
  done
} >"$out/report.txt"
{
  printf '{"version": %s,\n "device": %s,\n "checks": [\n' \
    "$(quoted "$(cat "$here/version" 2>/dev/null)")" "$(quoted "$reason")"
  for i in "${!json_entries[@]}"; do
    [ "$i" = 0 ] || printf ',\n'
    printf '  %s' "${json_entries[$i]}"
  done
  printf '\n ]}\n'
} >"$out/report.json"
tar -C "$work" -czf "$out/logs.tar.gz" logs
echo "report: $out/report.txt, $out/report.json, $out/logs.tar.gz"
exit $failed
