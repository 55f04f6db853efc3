#include "kernels/cpu/captured_loop.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "kernels/cpu/kept_loop.h"

namespace lockstep::cpu {

namespace {

void add_operand(KeptLoop& loop, const In& in, ComputeLane lane) {
  KeptLoop::Operand& operand = loop.operands[loop.count++];
  operand.dtype = in.dtype;
  operand.lane = lane;
  if (!is_stored_as(in.dtype, lane)) operand.load = load_function(lane, in.dtype);
}

void set_result(KeptLoop& loop, const Out& out, ComputeLane lane) {
  loop.lane = lane;
  if (!is_stored_as(out.dtype, lane)) loop.store = store_function(out.dtype, lane);
}

}  // namespace

void capture_loop(LoopCapture& capture, const Out& out, std::span<const In* const> inputs,
                  const LoopSpec& spec) {
  LoopCapture::Taken taken{
      .loop = nullptr, .result = out.address, .count = out.numel, .operands = {}};
  const bool is_simple = out.contiguous && std::ranges::all_of(inputs, [&](const In* in) {
                           return in->contiguous && (in->numel == out.numel || in->numel == 1);
                         });
  if (spec.functor_bytes == 0 || !is_simple) return capture.take(std::move(taken));
  auto loop = std::make_shared<KeptLoop>();
  loop->loop = spec.loop;
  loop->heavy = spec.heavy;
  loop->functor_name = spec.functor_name;
  std::memcpy(loop->constants.functor.data(), spec.functor, spec.functor_bytes);
  set_result(*loop, out, spec.lanes[0]);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const In& in = *inputs[i];
    add_operand(*loop, in, spec.lanes[i + 1]);
    if ((spec.numbers >> i & 1) != 0) {
      loop->operands[i].is_number = true;
      std::memcpy(loop->constants.numbers[i].data(), in.address, lockstep::size_of(in.dtype));
    } else {
      taken.operands.push_back(in.address);
    }
  }
  taken.loop = std::move(loop);
  capture.take(std::move(taken));
}

void capture_cast(LoopCapture& capture, const Out& out, const In& src) {
  auto loop = std::make_shared<KeptLoop>();
  const ComputeLane lane = lane_of_cast(out.dtype, src.dtype);
  set_result(*loop, out, lane);
  add_operand(*loop, src, lane);
  if (out.dtype == src.dtype) {
    loop->store = nullptr;
    loop->operands[0].load = nullptr;
  }
  const bool is_simple = out.contiguous && src.contiguous && src.numel == out.numel;
  capture.take({.loop = is_simple ? std::move(loop) : nullptr,
                .result = out.address,
                .count = out.numel,
                .operands = {src.address}});
}

}  // namespace lockstep::cpu
