#include "kernels/cuda/reduce/scan.h"

#include "core/dispatch/kernel.h"
#include "core/tensor/shape.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/reduce/scan.fatbin.h"
#include "kernels/cuda/workspace.h"

namespace lockstep::cuda {

namespace {

/// Kernels for lines that are contiguous (rows), and for other lines.
struct ScanKernels {
  Kernel lines, line_parts, rows, row_parts, carry;
  size_t state_bytes;  ///< size of the state of one part
  explicit ScanKernels(const std::string& name, size_t bytes = sizeof(double))
      : lines(kImage, name + "_lines"),
        line_parts(kImage, name + "_line_parts"),
        rows(kImage, name + "_rows"),
        row_parts(kImage, name + "_row_parts"),
        carry(kImage, name + "_carry"),
        state_bytes(bytes) {}
};
const ScanKernels kSumFloating("scan_sum_floating"), kSumInt("scan_sum_int");
const ScanKernels kProductFloating("scan_product_floating"), kProductInt("scan_product_int");
const ScanKernels kLogSum("scan_logsum");
const ScanKernels kRecurrence("scan_recurrence", 2 * sizeof(double));

ScanLines lines_of(const Out& out, const In& x, int64_t dim) {
  ScanLines lines{};
  lines.x = x.address;
  lines.y = out.address;
  lines.dtype = out.dtype;
  lines.outer = lines.n = lines.inner = 1;
  if (out.rank == 0) return lines;
  const int d = static_cast<int>(wrap_dim("scan", dim, out.rank));
  lines.n = out.size(d);
  for (int i = 0; i < d; ++i) lines.outer *= out.size(i);
  for (int i = d + 1; i < out.rank; ++i) lines.inner *= out.size(i);
  return lines;
}

void scan(const ScanKernels& kernels, ScanLines lines) {
  constexpr int64_t kShort = 8;  // lines up to this length are scanned by a single thread
  const bool rows = lines.inner == 1 && lines.n > kShort;
  const int64_t count = lines.outer * lines.inner;
  lines.part = rows ? scan_row_part(count, lines.n) : scan_line_part(count, lines.n);
  lines.parts = (lines.n + lines.part - 1) / lines.part;
  const auto run = [&](Kernel kernel, int64_t tasks, int64_t per_block) {
    launch(kernel, {.blocks = {blocks_for(tasks, per_block), 1, 1}, .threads = kScanThreads},
           lines);
  };
  const int64_t per_block = rows ? 1 : kScanThreads;
  const bool cut = lines.parts > 1;
  const Workspace joined(cut ? static_cast<size_t>(count * lines.parts) * kernels.state_bytes : 0);
  lines.joined = joined.data();
  if (cut) {
    run(rows ? kernels.row_parts : kernels.line_parts, count * lines.parts, per_block);
    run(kernels.carry, count, kScanThreads / 32);
  }
  run(rows ? kernels.rows : kernels.lines, count * lines.parts, per_block);
}

void scan(const ScanKernels& kernels, const Out& out, const In& self, int64_t dim) {
  if (out.numel != 0) scan(kernels, lines_of(out, self, dim));
}

void cumsum(const Out& out, const In& self, int64_t dim, std::optional<DType>) {
  scan(is_floating(out.dtype) ? kSumFloating : kSumInt, out, self, dim);
}
void cumprod(const Out& out, const In& self, int64_t dim, std::optional<DType>) {
  scan(is_floating(out.dtype) ? kProductFloating : kProductInt, out, self, dim);
}
void logcumsumexp(const Out& out, const In& self, int64_t dim) { scan(kLogSum, out, self, dim); }
void linear_recurrence(const Out& out, const In& decay, const In& input, int64_t dim) {
  if (out.numel == 0) return;
  ScanLines lines = lines_of(out, input, dim);
  lines.decay = decay.address;
  scan(kRecurrence, lines);
}

}  // namespace

LS_KERNEL(CUDA, "cumsum", cumsum, Strides::kContiguous);
LS_KERNEL(CUDA, "cumprod", cumprod, Strides::kContiguous);
LS_KERNEL(CUDA, "logcumsumexp", logcumsumexp, Strides::kContiguous);
LS_KERNEL(CUDA, "_linear_recurrence", linear_recurrence, Strides::kContiguous);

}  // namespace lockstep::cuda
