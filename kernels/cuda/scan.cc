#include "kernels/cuda/scan.h"

#include <string>

#include "core/library.h"
#include "core/shape.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/scan.fatbin.h"
#include "kernels/cuda/workspace.h"

namespace lockstep::cuda {

namespace {

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

void launch_lines(const std::string& name, const ScanLines& lines) {
  launch(kImage, (name + "_lines").c_str(),
         {.blocks = {blocks_for(lines.outer * lines.inner, kScanThreads), 1, 1},
          .threads = kScanThreads},
         lines);
}

void launch_rows(const std::string& name, const ScanLines& lines) {
  launch(kImage, name.c_str(),
         {.blocks = {blocks_for(lines.outer * lines.parts, 1), 1, 1}, .threads = kScanThreads},
         lines);
}

void scan(const std::string& name, const Out& out, const In& self, int64_t dim) {
  if (out.numel == 0) return;
  ScanLines lines = lines_of(out, self, dim);
  constexpr int64_t kShort = 8;  // elements that a thread may as well take alone
  if (lines.inner > 1 || lines.n <= kShort) return launch_lines(name, lines);
  lines.part = scan_part(lines.outer, lines.n);
  lines.parts = (lines.n + lines.part - 1) / lines.part;
  if (lines.parts == 1) return launch_rows(name + "_rows", lines);
  // The parts are joined, these joins are scanned, and each part begins with those before it.
  const Workspace joined(static_cast<size_t>(lines.outer * lines.parts) * sizeof(double));
  lines.joined = joined.data();
  launch_rows(name + "_parts", lines);
  ScanLines parts = lines;
  parts.x = parts.y = lines.joined;
  parts.dtype = is_floating(lines.dtype) ? DType::kF64 : DType::kI64;
  parts.n = parts.part = lines.parts;
  parts.parts = 1;
  launch_rows(name + "_rows", parts);
  launch_rows(name + "_rows", lines);
}

const char* kind_of(DType dtype) { return is_floating(dtype) ? "_floating" : "_int"; }

void cumsum(const Out& out, const In& self, int64_t dim, std::optional<DType>) {
  scan(std::string("scan_sum") + kind_of(out.dtype), out, self, dim);
}
void cumprod(const Out& out, const In& self, int64_t dim, std::optional<DType>) {
  scan(std::string("scan_product") + kind_of(out.dtype), out, self, dim);
}
void logcumsumexp(const Out& out, const In& self, int64_t dim) {
  scan("scan_logsum", out, self, dim);
}
void linear_recurrence(const Out& out, const In& decay, const In& input, int64_t dim) {
  if (out.numel == 0) return;
  ScanLines lines = lines_of(out, input, dim);
  lines.decay = decay.address;
  launch_lines("scan_recurrence", lines);
}

}  // namespace

LS_KERNEL(CUDA, "cumsum", cumsum, Strides::kContiguous);
LS_KERNEL(CUDA, "cumprod", cumprod, Strides::kContiguous);
LS_KERNEL(CUDA, "logcumsumexp", logcumsumexp, Strides::kContiguous);
LS_KERNEL(CUDA, "_linear_recurrence", linear_recurrence, Strides::kContiguous);

}  // namespace lockstep::cuda
