#include "kernels/cuda/kept_loop.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace lockstep::cuda {

void capture_loop(LoopCapture& capture, const PointwiseKernel& kernel, const Out& out,
                  std::span<const PointwiseInput> inputs, std::span<const unsigned char> functor) {
  LoopCapture::Taken taken{
      .loop = nullptr, .result = out.address, .count = out.numel, .operands = {}};
  const bool is_simple =
      out.contiguous && std::ranges::all_of(inputs, [&](const PointwiseInput& input) {
        return input.tensor->contiguous &&
               (input.tensor->numel == out.numel || input.tensor->numel == 1);
      });
  // Without a name the functor refers to something of its call.
  if (!is_simple || kernel.functor.empty()) return capture.take(std::move(taken));
  auto loop = std::make_shared<KeptLoop>();
  loop->kernel = &kernel;
  std::ranges::copy(functor, loop->functor.begin());
  loop->functor_bytes = functor.size();
  loop->dtype = out.dtype;
  for (const PointwiseInput& input : inputs) {
    KeptLoop::Operand& operand = loop->operands[loop->count++];
    operand.dtype = input.tensor->dtype;
    operand.is_number = input.is_number;
    if (input.is_number) {
      std::memcpy(operand.number.data(), input.tensor->address, size_of(operand.dtype));
    } else {
      taken.operands.push_back(input.tensor->address);
    }
  }
  taken.loop = std::move(loop);
  capture.take(std::move(taken));
}

void capture_cast(LoopCapture& capture, const Out& out, const In& src) {
  auto loop = std::make_shared<KeptLoop>();
  loop->dtype = out.dtype;
  loop->count = 1;
  loop->operands[0].dtype = src.dtype;
  const bool is_simple = out.contiguous && src.contiguous && src.numel == out.numel;
  capture.take({.loop = is_simple ? std::move(loop) : nullptr,
                .result = out.address,
                .count = out.numel,
                .operands = {src.address}});
}

}  // namespace lockstep::cuda
