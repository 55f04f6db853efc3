#include "kernels/cuda/scan.h"

#include "core/library.h"
#include "core/shape.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/scan.fatbin.h"
#include "kernels/cuda/workspace.h"

namespace lockstep::cuda {

namespace {

struct ScanKernels {
  Kernel lines, parts, rows;
  explicit ScanKernels(const std::string& name)
      : lines(kImage, name + "_lines"),
        parts(kImage, name + "_parts"),
        rows(kImage, name + "_rows") {}
};
const ScanKernels kSumFloating("scan_sum_floating"), kSumInt("scan_sum_int");
const ScanKernels kProductFloating("scan_product_floating"), kProductInt("scan_product_int");
const ScanKernels kLogSum("scan_logsum");
const Kernel kRecurrence(kImage, "scan_recurrence_lines");

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

void launch_lines(Kernel kernel, const ScanLines& lines) {
  launch(kernel,
         {.blocks = {blocks_for(lines.outer * lines.inner, kScanThreads), 1, 1},
          .threads = kScanThreads},
         lines);
}

void launch_rows(Kernel kernel, const ScanLines& lines) {
  launch(kernel,
         {.blocks = {blocks_for(lines.outer * lines.parts, 1), 1, 1}, .threads = kScanThreads},
         lines);
}

void scan(const ScanKernels& kernels, const Out& out, const In& self, int64_t dim) {
  if (out.numel == 0) return;
  ScanLines lines = lines_of(out, self, dim);
  constexpr int64_t kShort = 8;  // elements that a thread may as well take alone
  if (lines.inner > 1 || lines.n <= kShort) return launch_lines(kernels.lines, lines);
  lines.part = scan_part(lines.outer, lines.n);
  lines.parts = (lines.n + lines.part - 1) / lines.part;
  if (lines.parts == 1) return launch_rows(kernels.rows, lines);
  // The parts are joined, these joins are scanned, and each part begins with those before it.
  const Workspace joined(static_cast<size_t>(lines.outer * lines.parts) * sizeof(double));
  lines.joined = joined.data();
  launch_rows(kernels.parts, lines);
  ScanLines parts = lines;
  parts.x = parts.y = lines.joined;
  parts.dtype = is_floating(lines.dtype) ? DType::kF64 : DType::kI64;
  parts.n = parts.part = lines.parts;
  parts.parts = 1;
  launch_rows(kernels.rows, parts);
  launch_rows(kernels.rows, lines);
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
  launch_lines(kRecurrence, lines);
}

}  // namespace

LS_KERNEL(CUDA, "cumsum", cumsum, Strides::kContiguous);
LS_KERNEL(CUDA, "cumprod", cumprod, Strides::kContiguous);
LS_KERNEL(CUDA, "logcumsumexp", logcumsumexp, Strides::kContiguous);
LS_KERNEL(CUDA, "_linear_recurrence", linear_recurrence, Strides::kContiguous);

}  // namespace lockstep::cuda
