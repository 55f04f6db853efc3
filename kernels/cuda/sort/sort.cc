#include "kernels/cuda/sort/sort.h"

#include <algorithm>
#include <limits>

#include "core/dispatch/kernel.h"
#include "kernels/common/sort_lines.h"
#include "kernels/cuda/factory/copy.h"
#include "kernels/cuda/kernel_tables.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/sort/sort.fatbin.h"
#include "kernels/cuda/workspace.h"

namespace lockstep::cuda {

namespace {

const Kernel kBegin(kImage, "sort_begin");
const Kernel kStep(kImage, "sort_step");
const Kernel kFinish(kImage, "sort_finish");
const Kernel kShortFirst(kImage, "sort_short_first");
const Kernel kShortRank(kImage, "sort_short_rank");
const Kernel kMedian(kImage, "sort_median");
const Kernel kMode(kImage, "sort_mode");
const UnitKernels kWrite(kImage, "sort_write");

LaunchShape shape_of(int64_t blocks, unsigned threads = 256) {
  return {.blocks = {static_cast<unsigned>(blocks), 1, 1}, .threads = threads, .shared_bytes = 0};
}

/// The lines of a tensor as sort entries, with the operations that order and write them.
class Lines {
 public:
  Lines(const In& self, const SortLines& lines, bool descending)
      : entries_(static_cast<size_t>(lines.count() * sort_room(lines.n)) * sizeof(SortEntry)),
        first_of_(static_cast<size_t>(lines.count()) * sizeof(int64_t)) {
    p_.self = self.address;
    p_.lines = lines;
    p_.dtype = self.dtype;
    p_.descending = descending;
    p_.entries = entries_.data<SortEntry>();
    p_.room = sort_room(lines.n);
    p_.chunk = std::min(p_.room, Sort::kChunk);
  }

  bool are_short() const { return p_.lines.n <= Sort::kShort; }

  void sort() {
    const int64_t entries = p_.lines.count() * p_.room;
    const auto threads = static_cast<unsigned>(std::clamp<int64_t>(p_.chunk / 2, 32, 256));
    const LaunchShape chunks = shape_of(entries / p_.chunk, threads);
    launch(kBegin, chunks, p_);
    for (p_.size = 2 * p_.chunk; p_.size <= p_.room; p_.size *= 2) {
      for (p_.stride = p_.size / 2; p_.stride >= p_.chunk; p_.stride /= 2) {
        launch(kStep, shape_of(blocks_for(entries / 2, 256)), p_);
      }
      launch(kFinish, chunks, p_);
    }
  }
  /// Moves the first `length` entries of short lines to the front, sorted if `ranked`.
  void choose_first(int64_t length, bool ranked) {
    p_.length = length;
    p_.ranked = ranked;
    launch(kShortFirst, shape_of(blocks_for(p_.lines.count(), 256)), p_);
  }
  /// Moves the entry of rank `rank` of short lines to its sorted position.
  void choose_rank(int64_t rank) {
    p_.first = rank;
    launch(kShortRank, shape_of(blocks_for(p_.lines.count(), 256)), p_);
  }
  /// Runs `kernel`, which chooses one element of each line.
  void choose(Kernel kernel, bool skip_nan) {
    p_.first_of = first_of_.data<int64_t>();
    p_.skip_nan = skip_nan;
    launch(kernel, shape_of(blocks_for(p_.lines.count(), 256)), p_);
  }

  /// Writes `length` elements of each line, from the chosen one on or else from position `first`.
  /// `indices` may be null.
  void write(const Out& values, int64_t* indices, int64_t length, int64_t first = 0) {
    p_.values = values.address;
    p_.indices = indices;
    p_.length = length;
    p_.first = first;
    launch(kWrite[size_of(p_.dtype)], shape_of(blocks_for(p_.lines.count() * length, 256)), p_);
  }

 private:
  Sort p_{};
  Workspace entries_, first_of_;
};

void sort(const Out& values, const Out& indices, const In& self, int64_t dim, bool descending) {
  if (self.numel == 0) return;
  const SortLines all = sort_lines(self, dim);
  Lines lines(self, all, descending);
  lines.sort();
  lines.write(values, indices.data<int64_t>(), all.n);
}

/// In long lines, equal elements are taken in the order of their indices.
void topk(const Out& values, const Out& indices, const In& self, int64_t k, int64_t dim,
          bool largest, bool sorted) {
  if (values.numel == 0) return;
  const int64_t length = self.rank == 0 ? 1 : k;  // topk of a 0-d tensor is the tensor, for every k
  Lines lines(self, sort_lines(self, dim), largest);
  lines.are_short() ? lines.choose_first(length, sorted) : lines.sort();
  lines.write(values, indices.data<int64_t>(), length);
}

void kthvalue(const Out& values, const Out& indices, const In& self, int64_t k, int64_t dim, bool) {
  if (values.numel == 0) return;
  Lines lines(self, sort_lines(self, dim), false);
  lines.are_short() ? lines.choose_rank(k - 1) : lines.sort();
  lines.write(values, indices.data<int64_t>(), 1, k - 1);
}

/// Writes the one element of each line that `kernel` chooses.
void write_chosen(const Out& values, int64_t* indices, const In& self, const SortLines& all,
                  Kernel kernel, bool skip_nan) {
  if (values.numel == 0) return;
  Lines lines(self, all, false);
  lines.sort();
  lines.choose(kernel, skip_nan);
  lines.write(values, indices, 1);
}

void median_of_all(const Out& out, const In& self, bool skip_nan) {
  if (self.numel == 0) {
    if (is_floating(out.dtype)) return fill_elements(out, std::numeric_limits<double>::quiet_NaN());
    const int bits = 8 * static_cast<int>(size_of(out.dtype));
    const bool is_signed = out.dtype != DType::kU8 && out.dtype != DType::kBool;
    const int64_t lowest = std::numeric_limits<int64_t>::lowest() >> (64 - bits);
    return fill_elements(out, is_signed ? lowest : int64_t{0});
  }
  write_chosen(out, nullptr, self, {.outer = 1, .n = self.numel, .inner = 1}, kMedian, skip_nan);
}

void mode(const Out& values, const Out& indices, const In& self, int64_t dim, bool) {
  write_chosen(values, indices.data<int64_t>(), self, sort_lines(self, dim), kMode, false);
}
void median(const Out& out, const In& self) { median_of_all(out, self, false); }
void nanmedian(const Out& out, const In& self) { median_of_all(out, self, true); }
void median_dim(const Out& values, const Out& indices, const In& self, int64_t dim, bool) {
  write_chosen(values, indices.data<int64_t>(), self, sort_lines(self, dim), kMedian, false);
}
void nanmedian_dim(const Out& values, const Out& indices, const In& self, int64_t dim, bool) {
  write_chosen(values, indices.data<int64_t>(), self, sort_lines(self, dim), kMedian, true);
}

}  // namespace

LS_KERNEL(CUDA, "sort", sort, Strides::kContiguous);
LS_KERNEL(CUDA, "topk", topk, Strides::kContiguous);
LS_KERNEL(CUDA, "kthvalue", kthvalue, Strides::kContiguous);
LS_KERNEL(CUDA, "mode", mode, Strides::kContiguous);
LS_KERNEL(CUDA, "median", median, Strides::kContiguous);
LS_KERNEL(CUDA, "median.dim", median_dim, Strides::kContiguous);
LS_KERNEL(CUDA, "nanmedian", nanmedian, Strides::kContiguous);
LS_KERNEL(CUDA, "nanmedian.dim", nanmedian_dim, Strides::kContiguous);

}  // namespace lockstep::cuda
