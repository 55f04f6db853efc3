// Sorting and choosing by rank. Every dtype is ordered as 64-bit keys that carry their index, so
// one instantiation serves all. Where only some elements are chosen, which of several equals is
// taken follows from the algorithm: the one ATen uses, so that the indices agree.

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include "core/library.h"
#include "core/parallel.h"
#include "kernels/cpu/elements.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kGrain = 4096;  // elements worth a thread
constexpr uint64_t kSign = uint64_t{1} << 63;
constexpr uint64_t kNan = ~uint64_t{0};  // above every number

struct Entry {
  uint64_t key;
  int64_t index;
};
bool by_key(const Entry& a, const Entry& b) { return a.key < b.key; }
bool by_key_and_index(const Entry& a, const Entry& b) {
  return a.key < b.key || (a.key == b.key && a.index < b.index);
}

/// Unsigned keys in the order of the elements; -0 and 0 share one, and so do all NaN.
template <class T>
uint64_t key_of(T element) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<uint64_t>(static_cast<int64_t>(element)) ^ kSign;
  } else {
    const double value = convert<double>(element) + 0.0;  // turns -0 into 0
    if (value != value) return kNan;
    const uint64_t bits = std::bit_cast<uint64_t>(value);
    return (bits & kSign) != 0 ? ~bits : bits | kSign;
  }
}

/// A contiguous tensor as [outer, n, inner] around one dimension.
struct Lines {
  Lines(const In& self, int64_t dim) {
    if (self.rank == 0) return;
    const int d = static_cast<int>(wrap_dim("sort", dim, self.rank));
    n = self.size(d);
    for (int i = 0; i < d; ++i) outer *= self.size(i);
    for (int i = d + 1; i < self.rank; ++i) inner *= self.size(i);
  }
  /// Offset of the first element of a line of another length.
  int64_t start(int64_t line, int64_t length) const {
    return line / inner * length * inner + line % inner;
  }
  int64_t outer = 1;
  int64_t n = 1;
  int64_t inner = 1;
};

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

/// Writes the first `length` entries as the lines of both results.
void write_line(const Out& values, const Out& indices, const In& self, const Lines& lines,
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

/// Calls order(entries) for each line, after which the entries from `first(entries)` on are those
/// to write, `length` of them.
template <class Order>
void order_lines(const Out& values, const Out& indices, const In& self, int64_t dim,
                 bool descending, int64_t length, const Order& order) {
  const Lines lines(self, dim);
  parallel_for(0, lines.outer * lines.inner,
               std::max<int64_t>(1, kGrain / std::max<int64_t>(lines.n, 1)),
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
  const int64_t n = Lines(self, dim).n;
  order_lines(values, indices, self, dim, descending, n, [](std::vector<Entry>& entries) {
    std::sort(entries.begin(), entries.end(), by_key_and_index);
    return entries.data();
  });
}

void topk(const Out& values, const Out& indices, const In& self, int64_t k, int64_t dim,
          bool largest, bool sorted) {
  if (values.numel == 0) return;
  const int64_t length = self.rank == 0 ? 1 : k;
  if (k == 0) return;
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

/// Puts the entry that has `rank` entries below it in its place: Hoare's selection with the median
/// of three as pivot, which ends up between the parts.
const Entry* select_rank(std::vector<Entry>& entries, int64_t rank) {
  Entry* const e = entries.data();
  const auto put_in_order = [e](int64_t a, int64_t b) {
    if (e[a].key > e[b].key) std::swap(e[a], e[b]);
  };
  int64_t low = 0, high = static_cast<int64_t>(entries.size()) - 1;
  while (high > low + 1) {
    std::swap(e[low + (high - low) / 2], e[low + 1]);
    put_in_order(low + 1, high);
    put_in_order(low, high);
    put_in_order(low + 1, low);  // now low + 1 <= pivot at low <= high: no bounds to check below
    const uint64_t pivot = e[low].key;
    int64_t up = low + 1, down = high;
    while (true) {
      while (e[++up].key < pivot) continue;
      while (e[--down].key > pivot) continue;
      if (down < up) break;
      std::swap(e[up], e[down]);
    }
    std::swap(e[low], e[down]);
    if (down <= rank) low = up;
    if (down >= rank) high = down - 1;
  }
  if (high == low + 1) put_in_order(low, high);
  return e + rank;
}

/// NaN when there is one, unless `skip_nan`.
const Entry* find_median(std::vector<Entry>& entries, bool skip_nan) {
  const int64_t n = static_cast<int64_t>(entries.size());
  int64_t numbers = 0;
  const Entry* nan = nullptr;
  for (const Entry& entry : entries) {
    if (entry.key != kNan) ++numbers;
    if (entry.key == kNan && nan == nullptr) nan = &entry;
  }
  if (numbers < n && (!skip_nan || numbers == 0)) return nan;
  const auto middle = entries.begin() + (numbers - 1) / 2;
  std::nth_element(entries.begin(), middle, entries.end(), by_key_and_index);
  return &*middle;
}

void kthvalue(const Out& values, const Out& indices, const In& self, int64_t k, int64_t dim, bool) {
  if (values.numel == 0) return;
  order_lines(values, indices, self, dim, false, 1,
              [k](std::vector<Entry>& entries) { return select_rank(entries, k - 1); });
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

/// The last entry of the longest run of equals, the first such run in order.
const Entry* find_mode(std::vector<Entry>& entries) {
  std::sort(entries.begin(), entries.end(), by_key);
  const Entry* found = nullptr;
  int64_t longest = 0, run = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    ++run;
    const bool ends =
        i + 1 == entries.size() || entries[i].key != entries[i + 1].key || entries[i].key == kNan;
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
