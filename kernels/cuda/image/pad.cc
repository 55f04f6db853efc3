#include "kernels/cuda/image/pad.h"

#include <algorithm>

#include "core/dispatch/kernel.h"
#include "kernels/common/pad_overlap.h"
#include "kernels/cuda/factory/copy.h"
#include "kernels/cuda/image/pad.fatbin.h"
#include "kernels/cuda/kernel_tables.h"
#include "kernels/cuda/launch.h"

namespace lockstep::cuda {

namespace {

const UnitKernels kPad(kImage, "pad");
const DTypeKernels kPadBackward(kImage, "pad_backward");

/// The part of a tensor with the given sizes that starts `offset` elements after its start.
template <class Arg>
Arg part_of(const Arg& tensor, const Dims& sizes, int64_t offset) {
  Arg part = tensor;
  part.address = static_cast<std::byte*>(tensor.address) +
                 offset * static_cast<int64_t>(size_of(tensor.dtype));
  part.size_data = sizes.data();
  part.numel = count_elements(sizes);
  part.contiguous = is_contiguous(sizes, tensor.strides());
  return part;
}

void constant_pad_nd(const Out& out, const In& self, IntList pad, Scalar value) {
  fill_elements(out, value);
  const PadOverlap overlap(out, self, pad);
  if (overlap.is_empty()) return;
  copy_elements(part_of(out, overlap.lengths, overlap.to),
                part_of(self, overlap.lengths, overlap.from));
}

/// Makes the arguments of a call; `plain` is the unpadded tensor and `padded` the padded one.
Pad params_of(const TensorArg& plain, const TensorArg& padded, IntList padding, bool reflects,
              bool backward) {
  Pad p{};
  const TensorArg &from = backward ? padded : plain, &to = backward ? plain : padded;
  p.from = from.address;
  p.to = to.address;
  p.numel = to.numel;
  p.border = {reflects};
  const int rank = static_cast<int>(padding.size()) / 2;
  for (int i = 0; i < 3; ++i) {
    const int behind = 2 - i;  // number of dimensions after this one
    const bool given = behind < rank;
    p.size[i] = given ? plain.size(-1 - behind) : 1;
    p.padded[i] = given ? padded.size(-1 - behind) : 1;
    p.before[i] = given ? padding[2 * static_cast<size_t>(behind)] : 0;
  }
  const auto& sizes = backward ? p.size : p.padded;
  const auto& others = backward ? p.padded : p.size;
  const int64_t slice = sizes[1] * sizes[2], plane = sizes[0] * slice;
  p.plane = IndexSplitter(plane, to.numel);
  p.slice = IndexSplitter(slice, plane);
  p.line = IndexSplitter(sizes[2], slice);
  p.from_plane = others[0] * others[1] * others[2];
  return p;
}

void run(Kernel kernel, const Pad& p) {
  if (p.numel == 0) return;
  launch(kernel, {.blocks = {blocks_for(p.numel, 256), 1, 1}, .threads = 256, .shared_bytes = 0},
         p);
}

template <bool kReflects>
void pad(const Out& out, const In& self, IntList padding) {
  run(kPad[size_of(out.dtype)], params_of(self, out, padding, kReflects, false));
}

template <bool kReflects>
void pad_backward(const Out& out, const In& grad, const In&, IntList padding) {
  run(kPadBackward[out.dtype], params_of(out, grad, padding, kReflects, true));
}

}  // namespace

LS_KERNEL(CUDA, "constant_pad_nd", constant_pad_nd, Strides::kAny);
LS_KERNEL(CUDA, "reflection_pad1d", pad<true>, Strides::kContiguous);
LS_KERNEL(CUDA, "reflection_pad2d", pad<true>, Strides::kContiguous);
LS_KERNEL(CUDA, "reflection_pad3d", pad<true>, Strides::kContiguous);
LS_KERNEL(CUDA, "reflection_pad1d_backward", pad_backward<true>, Strides::kContiguous);
LS_KERNEL(CUDA, "reflection_pad2d_backward", pad_backward<true>, Strides::kContiguous);
LS_KERNEL(CUDA, "reflection_pad3d_backward", pad_backward<true>, Strides::kContiguous);
LS_KERNEL(CUDA, "replication_pad1d", pad<false>, Strides::kContiguous);
LS_KERNEL(CUDA, "replication_pad2d", pad<false>, Strides::kContiguous);
LS_KERNEL(CUDA, "replication_pad3d", pad<false>, Strides::kContiguous);
LS_KERNEL(CUDA, "replication_pad1d_backward", pad_backward<false>, Strides::kContiguous);
LS_KERNEL(CUDA, "replication_pad2d_backward", pad_backward<false>, Strides::kContiguous);
LS_KERNEL(CUDA, "replication_pad3d_backward", pad_backward<false>, Strides::kContiguous);

}  // namespace lockstep::cuda
