# shellcheck shell=bash
# The checks that run.sh runs. A check is a line of `checks` (name, time limit in seconds, what it
# shows), most important first, and a function check_NAME, which may call `skip`. run.sh sets: bin,
# here, work, out, device, folders, and the options.
# shellcheck disable=SC2154 # they are set there
# shellcheck disable=SC2317 # check_NAME is called by its name

# Read by run.sh.
# shellcheck disable=SC2034
checks='doctor|90|whether the machine is sound: clocks, memory errors, rates, links (lockstep doctor --gpu)
machine|60|driver, GPU, processor, libraries found
device_tests|180|streams, events, memory, autograd and training on cuda:0 (tests/device)
conformance|180|recorded calls of operators on cuda:0, and how many ran on the cpu instead
cuda_tests|180|kernels against the cpu (tests/cuda)
graphs|60|CUDA graphs (tests/cuda)
plugin|60|the plug-in of examples/custom_cuda_op (tests/cuda)
parity_gpt2|60|GPT-2 trained beside a recorded run
parity_llama|60|Llama trained beside a recorded run
train|60|the default training run on cuda:0
step_f32|60|GPT-2 124M, 8 x 1024 tokens a step, f32: tokens/s, MFU, memory
step_bf16|60|the same in bf16
step_f16|60|the same in f16 with a loss scale
step_bf16_large|90|64 x 1024 tokens a step in bf16
step_graphs|90|the same in bf16, and a model 128 wide that waits for launches, with CUDA graphs and without
steady_memory|60|steps after the third ask the driver for no memory
torch_step|300|64 x 1024 tokens a step in bf16, beside PyTorch eager and compile
overlap|90|two ranks on one GPU: how much of the sums hides behind backward
ddp_2_ranks|90|two ranks on one GPU beside a recorded run
nccl_1_rank|60|NCCL with a single rank (tests/device)
stress_allocator|60|random programs over the allocator
stress_streams|60|random programs over streams
sanitizer|90|a short training run under the stream sanitizer
memcheck|180|tests of kernels under compute-sanitizer, where it is installed
profile|90|time of each kernel of a step, where ncu is installed
kernels|90|bandwidth and FLOP/s of single operators
fused|120|functions of several operators, one by one and compiled with kernels of NVRTC
matmul|120|FLOP/s of matrix products
calls|60|what small operators cost the host
streams|60|time of launches, events and copies
torch_kernels|180|single operators beside PyTorch
torch_matmul|240|matrix products beside PyTorch
torch_calls|180|small operators beside PyTorch from C++
gradcheck|300|first and second derivatives on cuda:0 against central differences
synccheck|180|the same tests under compute-sanitizer: barriers that not all threads come to
racecheck|300|the same: threads of a block that race in shared memory'

skip() {
  echo "$*"
  exit 77
}

# --- sizes ---------------------------------------------------------------------------------------

batch=8 large_batch=64 steps=10 rounds=3 training_steps=300 stress_seconds=10
context=1024 layers=12 heads=12 width=768 vocabulary=50304 narrow_width=128
pass_sizes=() product_sizes=() call_rounds=() cases=() training=() cuda_filter='*'
held_out_bytes=65536
if [ -n "$small" ]; then
  batch=2 large_batch=4 steps=2 rounds=1 training_steps=2 stress_seconds=1
  context=16 layers=2 heads=2 width=16 vocabulary=64 narrow_width=8
  pass_sizes=(--elements 4096 --side 16 --seconds 0)
  product_sizes=(--tokens 16 --width 16 --vocabulary 32 --side 32 --seconds 0)
  call_rounds=(--rounds 1) cases=(--op add.Tensor) held_out_bytes=256
  training=(--set model.gpt2.context_length=16 --set model.gpt2.layers=1 --set model.gpt2.heads=2
    --set model.gpt2.width=16 --set train.batch_size=2)
  cuda_filter='CudaCopy*:CudaPointwise*'
fi
model=(--set "model.gpt2.vocab_size=$vocabulary" --set "model.gpt2.context_length=$context"
  --set "model.gpt2.layers=$layers" --set "model.gpt2.heads=$heads" --set "model.gpt2.width=$width")

# peak PRECISION: dense TFLOP/s from NVIDIA's data sheets, which state 16-bit and TF32 peaks with
# sparsity (halved here); prints nothing for other GPUs.
peak() {
  case "$device:$1" in
    *"NVIDIA H200,"*:F32 | *"NVIDIA H100 80GB HBM3,"*:F32)
      if [ "${LOCKSTEP_ALLOW_TF32:-0}" = 1 ]; then echo 494; else echo 67; fi
      ;;
    *"NVIDIA H200,"* | *"NVIDIA H100 80GB HBM3,"*) echo 989 ;;
    *"NVIDIA A100-SXM4"*:F32)
      if [ "${LOCKSTEP_ALLOW_TF32:-0}" = 1 ]; then echo 156; else echo 19.5; fi
      ;;
    *"NVIDIA A100-SXM4"*) echo 312 ;;
  esac
}

# --- machine and tests ---------------------------------------------------------------------------

check_doctor() { "$bin/lockstep" doctor --gpu --time-limit 75 --run-dir "$work/runs"; }

check_machine() {
  nvidia-smi 2>&1 || echo "nvidia-smi: not there"
  uname -srm
  getconf GNU_LIBC_VERSION
  grep -m1 'model name' /proc/cpuinfo
  nproc
  echo "CUDA libraries in: ${folders:-no folder that was looked into}"
}

# tests PROGRAM FILTER: passes if some tests passed and none failed; skipped if all were skipped.
tests() {
  local status=0
  [ -x "$bin/$1" ] || skip "no $1 in this bundle"
  LOCKSTEP_TEST_PLUGINS=$here/plugins "$bin/$1" --gtest_filter="$2" >tests 2>&1 || status=$?
  grep -avE '^\[ (RUN  |      OK) ' tests
  [ "$status" = 0 ] || return "$status"
  # googletest lists skipped tests, and prints that 0 tests passed if all were skipped.
  if grep -aqE '^\[  PASSED  \] 0 tests' tests; then
    skip "skipped: $(grep -aE -A 1 'Skipped$' tests | grep -avE 'Skipped$|^--$' | head -n 1)"
  fi
}

check_device_tests() {
  if [ -n "$small" ]; then tests test_device 'Devices/Streams*cuda'; else tests test_device '-Nccl*:*/cpu:*/host'; fi
}
# agreement [OPTION...]: compares with recorded results of PyTorch; the figure is the number of
# calls that ran on the CPU.
agreement() {
  local status=0
  [ -n "$conformance" ] || skip "no --conformance"
  "$bin/ops_conformance" "$conformance" --device cuda:0 "${cases[@]}" "$@" >answers || status=$?
  cat answers
  echo "{\"calls_on_cpu\": $(grep -oE '^[0-9]+ calls ran on the cpu' answers | grep -oE '^[0-9]+' || echo 0)}"
  return "$status"
}
check_conformance() { agreement; }
check_gradcheck() { agreement --double-backward; }
# Leaves out those that have a check of their own.
check_cuda_tests() { tests test_cuda "$cuda_filter-CudaGraph*:CudaPlugin*"; }
check_graphs() { tests test_cuda 'CudaGraph*'; }
check_plugin() { tests test_cuda 'CudaPlugin*'; }
check_nccl_1_rank() { tests test_device 'Nccl*'; }
# sanitize TOOL FILTER: tests of kernels under compute-sanitizer. Kernels are looked for in several
# modules, so the driver's answer "not found" is no error.
sanitize() {
  command -v compute-sanitizer >/dev/null || skip "no compute-sanitizer"
  [ -x "$bin/test_cuda" ] || skip "no test_cuda in this bundle"
  LOCKSTEP_TEST_PLUGINS=$here/plugins compute-sanitizer --tool "$1" --report-api-errors no \
    --error-exitcode 1 "$bin/test_cuda" --gtest_filter="$2" >"$1.log" 2>&1
  local status=$?
  grep -avE '^\[ (RUN  |      OK) |^$|^\[-' "$1.log"
  return $status
}
check_memcheck() { sanitize memcheck "$cuda_filter-*Attention*"; }
check_synccheck() { sanitize synccheck "$cuda_filter-*Attention*"; }
# Without what may run cuDNN's kernels, in which it finds hazards.
check_racecheck() { sanitize racecheck "$cuda_filter-*Attention*:*Conv*"; }

# --- training ------------------------------------------------------------------------------------

parity_of() {
  [ -n "$parity" ] || skip "no --parity"
  "$bin/parity" "$parity/$1" --device cuda:0 "${@:2}"
}
check_parity_gpt2() { parity_of gpt2; }
check_parity_llama() { parity_of llama; }
check_ddp_2_ranks() { parity_of gpt2 --ranks 2; }

train() {
  local text=$here/data/kjv.txt
  [ -f "$text" ] || skip "no data/kjv.txt in this bundle"
  "$bin/lockstep" train "$here/configs/gpt_kjv.txtpb" --set device=cuda:0 --set data.text.path="$text" \
    --set data.text.held_out_bytes="$held_out_bytes" "${training[@]}" "$@"
}
check_train() {
  train --steps "$training_steps" --set train.eval_every="$training_steps" --run-dir "$work/train"
}
check_sanitizer() {
  LOCKSTEP_STREAM_SANITIZER=1 train --steps 5 --set train.eval_every=5 --run-dir "$work/sanitizer"
}

# step PRECISION BATCH [OPTION...]
step() {
  local peak_tflops
  peak_tflops=$(peak "$1")
  "$bin/lockstep" bench step "$here/configs/bench_gpt2.txtpb" --json --precision "$1" \
    --steps "$steps" --set device=cuda:0 "${model[@]}" --set train.batch_size="$2" \
    --set train.micro_batch_size="$2" --set train.peak_tflops="${peak_tflops:-0}" "${@:3}"
}
check_step_f32() { step F32 "$batch"; }
check_step_bf16() { step BF16_MIXED "$batch"; }
check_step_f16() { step F16_MIXED "$batch"; }
check_step_bf16_large() { step BF16_MIXED "$large_batch"; }
# Kernels of the small model take less time than their launches.
check_step_graphs() {
  step BF16_MIXED "$batch" --set compile.cuda_graphs=true || return
  local narrow=(--set "model.gpt2.width=$narrow_width" --set model.gpt2.heads=2
    --set "model.gpt2.context_length=$narrow_width")
  step BF16_MIXED "$batch" "${narrow[@]}" && step BF16_MIXED "$batch" "${narrow[@]}" --set compile.cuda_graphs=true
}
# Time of each kernel of three warming steps and one more, by name, the longest in all first.
check_profile() {
  command -v ncu >/dev/null || skip "no ncu"
  ncu --clock-control none --print-units base --metrics gpu__time_duration.sum --csv \
    "$bin/lockstep" bench step "$here/configs/bench_gpt2.txtpb" --json --precision BF16_MIXED \
    --steps 1 --set device=cuda:0 "${model[@]}" --set train.batch_size="$large_batch" \
    --set train.micro_batch_size="$large_batch" >profile.csv || return
  # The kernel's name is the fifth of the quoted fields, the time in ns the last.
  sed -nE 's/^"[0-9]+","[^"]*","[^"]*","[^"]*","([^"]*)",.*"gpu__time_duration.sum","ns","([0-9.,]+)"$/\2\t\1/p' \
    profile.csv | tr -d ',' |
    awk -F'\t' '{ n[$2]++; t[$2] += $1 } END { for (k in n) printf "%12.0f us %6d  %s\n", t[k] / 1e3, n[k], k }' |
    sort -rn | head -n 40
}
check_steady_memory() {
  local figures
  figures=$(step BF16_MIXED "$batch") || return
  echo "$figures"
  if [[ $figures != *'"driver_calls":0,'* ]]; then
    echo "the driver was asked for memory, or given some back, in steps after the third"
    return 1
  fi
  echo "no driver call in $steps steps after the third"
}
check_overlap() {
  "$bin/lockstep" bench overlap "$here/configs/bench_gpt2.txtpb" --thread-ranks 2 --json \
    --svg "$out/overlap.svg" --steps "$steps" --set device=cuda:0 --set precision=BF16_MIXED \
    "${model[@]}" --set train.batch_size="$batch" --set train.micro_batch_size=$((batch / 2))
}

# --- operators, memory, streams ------------------------------------------------------------------

check_kernels() { "$bin/lockstep" bench kernels --device cuda:0 --json "${pass_sizes[@]}"; }
check_fused() { "$bin/lockstep" bench kernels --compiled --device cuda:0 --json "${pass_sizes[@]}"; }
check_matmul() { "$bin/lockstep" bench matmul --device cuda:0 --json "${product_sizes[@]}"; }
check_calls() { "$bin/lockstep" bench calls --device cuda:0 --json "${call_rounds[@]}"; }
check_streams() { "$bin/lockstep" bench streams --device cuda:0 --json; }
check_stress_allocator() {
  "$bin/lockstep" stress allocator --device cuda:0 --seconds "$stress_seconds"
}
check_stress_streams() {
  "$bin/lockstep" stress streams --device cuda:0 --seconds "$stress_seconds"
}

# --- beside PyTorch ------------------------------------------------------------------------------

# beside_torch TABLE [OPTION...]: skipped if Python has no PyTorch that can use the device.
beside_torch() {
  "$torch" -c "import torch; torch.ones(1, device='$torch_device')" >/dev/null 2>&1 ||
    skip "no $torch with a PyTorch that can use $torch_device"
  "$torch" "$here/beside_torch.py" --lockstep "$bin/lockstep" --rounds "$rounds" \
    --torch-device "$torch_device" "$@"
}
check_torch_step() {
  beside_torch step --config "$here/configs/bench_gpt2.txtpb" --precision BF16_MIXED \
    --batch "$large_batch" --steps "$steps" --vocabulary "$vocabulary" --context "$context" \
    --layers "$layers" --heads "$heads" --width "$width"
}
check_torch_kernels() { beside_torch kernels "${pass_sizes[@]}"; }
check_torch_matmul() { beside_torch matmul "${product_sizes[@]}"; }
check_torch_calls() { beside_torch calls; }
