#include "kernels/cuda/attention/rotary.h"

#include "core/dispatch/kernel.h"
#include "kernels/common/head_strides.h"
#include "kernels/common/turned_heads.h"
#include "kernels/cuda/attention/rotary.fatbin.h"
#include "kernels/cuda/factory/copy.h"
#include "kernels/cuda/kernel_tables.h"
#include "kernels/cuda/launch.h"

namespace lockstep::cuda {

namespace {

const DTypeKernels kRotary(kImage, "rotary");

Rotary::Strides strides_of(const HeadStrides& s) {
  return {s.of_batch, s.of_head, s.of_position, s.of_column};
}

void rotary_embedding(const Out& out, const In& input, const In& cosine, const In& sine,
                      bool inverse) {
  if (out.numel == 0) return;
  const HeadStrides to(out);
  const int64_t pairs = out.size(-1) / 2;
  const int64_t count = out.numel / 2;
  const Rotary p{.to = out.address,
                 .from = input.address,
                 .cosine = cosine.address,
                 .sine = sine.address,
                 .to_strides = strides_of(to),
                 .from_strides = strides_of(HeadStrides(input)),
                 .cosine_row = cosine.stride(0),
                 .cosine_column = cosine.stride(1),
                 .sine_row = sine.stride(0),
                 .sine_column = sine.stride(1),
                 .count = count,
                 .pairs = IndexSplitter(pairs, count),
                 .positions = IndexSplitter(to.positions, count / pairs),
                 .heads = IndexSplitter(to.heads, count / pairs / to.positions),
                 .inverse = inverse};
  launch(kRotary[out.dtype],
         {.blocks = {blocks_for(count, 256), 1, 1}, .threads = 256, .shared_bytes = 0}, p);
}

void rotary_of_qkv(const Out& out, const In& qkv, const In& cosine, const In& sine, int64_t heads,
                   int64_t key_heads, bool inverse) {
  if (out.numel == 0) return;
  const TurnedHeads parts(out, heads, key_heads);
  rotary_embedding(parts.heads(out), parts.heads(qkv), cosine, sine, inverse);
  copy_elements(parts.values(out), parts.values(qkv));
}

}  // namespace

LS_KERNEL(CUDA, "rotary_embedding", rotary_embedding, Strides::kAny);
LS_KERNEL(CUDA, "rotary_of_qkv", rotary_of_qkv, Strides::kContiguous);

}  // namespace lockstep::cuda
