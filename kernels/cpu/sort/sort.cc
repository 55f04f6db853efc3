// Sorting and selection by rank. Elements of every dtype are converted to 64-bit keys with their
// index, so one instantiation serves all. Where only some elements are selected, the algorithm
// determines which of several equal ones is taken: it is ATen's, so that the indices agree.

#include <algorithm>
#include <limits>
#include <vector>

#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "kernels/common/select_rank.h"
#include "kernels/common/sort_lines.h"
#include "kernels/cpu/elements.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kGrain = 4096;  // minimum elements per task

using Entry = SortEntry;

bool by_key(const Entry& a, const Entry& b) { return a.key < b.key; }
bool by_key_and_index(const Entry& a, const Entry& b) {
  return a.key < b.key || (a.key == b.key && a.index < b.index);
}

template <class T>
uint64_t key_of(T element) {
  if constexpr (std::is_integral_v<T>) return sort_key(static_cast<int64_t>(element));
  return sort_key(convert<double>(element));
}

void read_line(const In& self, int64_t start, int64_t step, bool descending,
               std::vector<Entry>& entries) {
  with_type(self.dtype, [&]<class T>() {
    const T* x = self.data<T>() + start;
    for (size_t i = 0; i < entries.size(); ++i) {
      const int64_t index = static_cast<int64_t>(i);
      const uint64_t key = key_of(x[index * step]);
      entries[i] = {descending ? ~key : key, index};
    }
  });
}

/// Writes the first `length` entries as one line of both results.
void write_line(const Out& values, const Out& indices, const In& self, const SortLines& lines,
                int64_t line, const Entry* entries, int64_t length) {
  const int64_t from = lines.start(line, lines.n), to = lines.start(line, length);
  for (int64_t i = 0; i < length; ++i) {
    indices.data<int64_t>()[to + i * lines.inner] = entries[i].index;
  }
  with_bits(self.dtype, [&]<class T>() {
    for (int64_t i = 0; i < length; ++i) {
      values.data<T>()[to + i * lines.inner] =
          self.data<T>()[from + entries[i].index * lines.inner];
    }
  });
}

/// Calls order(entries) for each line and then writes the `length` entries from `first(entries)`
/// on.
template <class Order>
void order_lines(const Out& values, const Out& indices, const In& self, int64_t dim,
                 bool descending, int64_t length, const Order& order) {
  const SortLines lines = sort_lines(self, dim);
  parallel_for(0, lines.count(), std::max<int64_t>(1, kGrain / std::max<int64_t>(lines.n, 1)),
               [&](int64_t begin, int64_t end) {
                 std::vector<Entry> entries(static_cast<size_t>(lines.n));
                 for (int64_t line = begin; line < end; ++line) {
                   read_line(self, lines.start(line, lines.n), lines.inner, descending, entries);
                   const Entry* first = order(entries);
                   write_line(values, indices, self, lines, line, first, length);
                 }
               });
}

void sort(const Out& values, const Out& indices, const In& self, int64_t dim, bool descending) {
  if (self.numel == 0) return;
  const int64_t n = sort_lines(self, dim).n;
  order_lines(values, indices, self, dim, descending, n, [](std::vector<Entry>& entries) {
    std::sort(entries.begin(), entries.end(), by_key_and_index);
    return entries.data();
  });
}

void topk(const Out& values, const Out& indices, const In& self, int64_t k, int64_t dim,
          bool largest, bool sorted) {
  if (values.numel == 0) return;
  const int64_t length = self.rank == 0 ? 1 : k;  // topk of a 0-d tensor is the tensor, for every k
  order_lines(values, indices, self, dim, largest, length, [=](std::vector<Entry>& entries) {
    const auto first = entries.begin(), end = first + length;
    if (length * 64 <= static_cast<int64_t>(entries.size())) {
      std::partial_sort(first, end, entries.end(), by_key);
    } else {
      std::nth_element(first, end - 1, entries.end(), by_key);
      if (sorted) std::sort(first, end - 1, by_key);
    }
    return entries.data();
  });
}

/// Returns the entry of the median: a NaN if there is one, unless `skip_nan`.
const Entry* find_median(std::vector<Entry>& entries, bool skip_nan) {
  const int64_t n = static_cast<int64_t>(entries.size());
  int64_t numbers = 0;
  const Entry* nan = nullptr;
  for (const Entry& entry : entries) {
    if (entry.key != kNanKey) ++numbers;
    if (entry.key == kNanKey && nan == nullptr) nan = &entry;
  }
  if (numbers < n && (!skip_nan || numbers == 0)) return nan;
  const auto middle = entries.begin() + (numbers - 1) / 2;
  std::nth_element(entries.begin(), middle, entries.end(), by_key_and_index);
  return &*middle;
}

void kthvalue(const Out& values, const Out& indices, const In& self, int64_t k, int64_t dim, bool) {
  if (values.numel == 0) return;
  order_lines(values, indices, self, dim, false, 1, [k](std::vector<Entry>& entries) {
    return select_rank(entries.data(), static_cast<int64_t>(entries.size()), k - 1);
  });
}

template <bool kSkipNan>
void median_along(const Out& values, const Out& indices, const In& self, int64_t dim, bool) {
  if (values.numel == 0) return;
  order_lines(values, indices, self, dim, false, 1,
              [](std::vector<Entry>& entries) { return find_median(entries, kSkipNan); });
}

template <bool kSkipNan>
void median_of_all(const Out& out, const In& self) {
  if (self.numel == 0) {
    with_type(out.dtype, [&]<class T>() {
      if constexpr (std::is_integral_v<T>) {
        *out.data<T>() = std::numeric_limits<T>::lowest();
      } else {
        *out.data<T>() = convert<T>(std::numeric_limits<double>::quiet_NaN());
      }
    });
    return;
  }
  std::vector<Entry> entries(static_cast<size_t>(self.numel));
  read_line(self, 0, 1, false, entries);
  const int64_t index = find_median(entries, kSkipNan)->index;
  with_bits(self.dtype, [&]<class T>() { *out.data<T>() = self.data<T>()[index]; });
}

/// Returns the last entry of the longest run of equal keys, the first such run in sorted order.
const Entry* find_mode(std::vector<Entry>& entries) {
  std::sort(entries.begin(), entries.end(), by_key);
  const Entry* found = nullptr;
  int64_t longest = 0, run = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    ++run;
    const bool ends = i + 1 == entries.size() || entries[i].key != entries[i + 1].key ||
                      entries[i].key == kNanKey;
    if (!ends) continue;
    if (run > longest) {
      longest = run;
      found = &entries[i];
    }
    run = 0;
  }
  return found;
}

void mode(const Out& values, const Out& indices, const In& self, int64_t dim, bool) {
  if (values.numel == 0) return;
  order_lines(values, indices, self, dim, false, 1, find_mode);
}

void median(const Out& out, const In& self) { median_of_all<false>(out, self); }
void nanmedian(const Out& out, const In& self) { median_of_all<true>(out, self); }
void median_dim(const Out& values, const Out& indices, const In& self, int64_t dim, bool keepdim) {
  median_along<false>(values, indices, self, dim, keepdim);
}
void nanmedian_dim(const Out& values, const Out& indices, const In& self, int64_t dim,
                   bool keepdim) {
  median_along<true>(values, indices, self, dim, keepdim);
}

}  // namespace

LS_KERNEL(CPU, "sort", sort, Strides::kContiguous);
LS_KERNEL(CPU, "topk", topk, Strides::kContiguous);
LS_KERNEL(CPU, "kthvalue", kthvalue, Strides::kContiguous);
LS_KERNEL(CPU, "mode", mode, Strides::kContiguous);
LS_KERNEL(CPU, "median", median, Strides::kContiguous);
LS_KERNEL(CPU, "median.dim", median_dim, Strides::kContiguous);
LS_KERNEL(CPU, "nanmedian", nanmedian, Strides::kContiguous);
LS_KERNEL(CPU, "nanmedian.dim", nanmedian_dim, Strides::kContiguous);

}  // namespace lockstep::cpu
