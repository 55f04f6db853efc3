#include <algorithm>

#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "core/ops/index/advanced_index_rules.h"
#include "kernels/common/reduce_plan.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/index/index_lines.h"
#include "kernels/cpu/index/index_reader.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kGrain = 16384;

/// The indexed elements of a contiguous tensor as sums of offsets: result element
/// [before][place][after][inner] is at before + place + after + inner. Dimensions in front of the
/// first indexed one are in `before` only if the indexed ones are adjacent; else they are in
/// `after`.
struct IndexedElements {
  std::vector<int64_t> before;
  std::vector<int64_t> places;
  std::vector<int64_t> after;
  int64_t inner = 1;
  Dims result_sizes;

  IndexedElements(std::string_view op, const TensorArg& tensor, InList indices);
};

/// Extends a row-major list of offsets by one dimension.
void extend(std::vector<int64_t>& offsets, int64_t size, int64_t stride) {
  std::vector<int64_t> longer;
  longer.reserve(offsets.size() * static_cast<size_t>(size));
  for (const int64_t offset : offsets) {
    for (int64_t i = 0; i < size; ++i) longer.push_back(offset + i * stride);
  }
  offsets = std::move(longer);
}

IndexedElements::IndexedElements(std::string_view op, const TensorArg& tensor, InList indices)
    : before{0}, after{0} {
  SmallVector<IntList, 4> lists;
  SmallVector<const IntList*, 4> shapes;
  for (const In& index : indices) lists.push_back(index.defined() ? index.sizes() : IntList());
  for (size_t d = 0; d < lists.size(); ++d) {
    shapes.push_back(indices[d].defined() ? &lists[d] : nullptr);
  }
  const IndexPlan plan = rules::plan_index(op, tensor.sizes(), {shapes.data(), shapes.size()});
  result_sizes = plan.result_sizes;
  const Dims strides = contiguous_strides(tensor.sizes());
  places.assign(static_cast<size_t>(count_elements(plan.index_sizes)), 0);
  int last_indexed = -1;
  for (int d = 0; d < tensor.rank; ++d) {
    if (((plan.indexed >> d) & 1) != 0) last_indexed = d;
  }
  for (int d = 0; d < tensor.rank; ++d) {
    const int64_t size = tensor.size(d);
    if (((plan.indexed >> d) & 1) == 0) {
      if (d > last_indexed) {
        inner *= size;
      } else {
        extend(d < plan.index_front ? before : after, size, strides[static_cast<size_t>(d)]);
      }
      continue;
    }
    if (places.empty()) continue;
    const In& index = indices[static_cast<size_t>(d)];
    const std::vector<int64_t> read = read_wrapped_indices(op, index, size, d);
    const Dims steps = broadcast_strides(index.sizes(), index.strides(), plan.index_sizes);
    Axes axes;
    for (size_t i = 0; i < steps.size(); ++i) axes.push_back({plan.index_sizes[i], steps[i]});
    for (size_t i = 0; i < places.size(); ++i) {
      const int64_t at = index.numel == 1 ? 0 : offset_at(static_cast<int64_t>(i), axes);
      places[i] += read[static_cast<size_t>(at)] * strides[static_cast<size_t>(d)];
    }
  }
}

void index(const Out& out, const In& self, InList indices) {
  const IndexedElements from("index", self, indices);
  if (out.numel == 0) return;
  const int64_t places = static_cast<int64_t>(from.places.size());
  const int64_t after = static_cast<int64_t>(from.after.size());
  with_bits(self.dtype, [&]<class T>() {
    const T* x = self.data<T>();
    T* y = out.data<T>();
    parallel_for(0, out.numel / from.inner, std::max<int64_t>(1, kGrain / from.inner),
                 [&](int64_t first, int64_t last) {
                   for (int64_t row = first; row < last; ++row) {
                     const int64_t at = from.before[static_cast<size_t>(row / after / places)] +
                                        from.places[static_cast<size_t>(row / after % places)] +
                                        from.after[static_cast<size_t>(row % after)];
                     std::copy_n(x + at, from.inner, y + row * from.inner);
                   }
                 });
  });
}

template <class T>
void add_to(T& place, T value) {
  if constexpr (std::is_same_v<T, bool>) {
    place = place || value;
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    place = T(static_cast<float>(place) + static_cast<float>(value));
  } else {
    place = static_cast<T>(place + value);
  }
}

/// Reads a contiguous tensor at the row-major positions of a shape it broadcasts to.
template <class T>
class BroadcastReader {
 public:
  BroadcastReader(const In& tensor, IntList sizes)
      : data_(tensor.data<T>()), same_(tensor.numel == count_elements(sizes)) {
    const Dims strides =
        broadcast_strides(tensor.sizes(), contiguous_strides(tensor.sizes()), sizes);
    for (size_t i = 0; i < strides.size(); ++i) axes_.push_back({sizes[i], strides[i]});
    one_ = tensor.numel == 1;
  }
  T operator[](int64_t i) const {
    if (same_) return data_[i];
    return one_ ? data_[0] : data_[offset_at(i, axes_)];
  }

 private:
  const T* data_;
  bool same_;
  bool one_;
  Axes axes_;
};

/// Each thread owns some elements of [before][after][inner] with all their places, so that every
/// destination receives its values in the order of the indices.
template <class T, bool kAdd>
void put(const Out& out, const IndexedElements& to, const In& values) {
  const BroadcastReader<T> value(values, to.result_sizes);
  T* y = out.data<T>();
  const int64_t places = static_cast<int64_t>(to.places.size());
  const int64_t after = static_cast<int64_t>(to.after.size());
  const int64_t columns = static_cast<int64_t>(to.before.size()) * after * to.inner;
  parallel_for(0, columns, std::max<int64_t>(64, kGrain / places),
               [&](int64_t first, int64_t last) {
                 for (int64_t place = 0; place < places; ++place) {
                   const int64_t base = to.places[static_cast<size_t>(place)];
                   for (int64_t column = first; column < last; ++column) {
                     const int64_t inner = column % to.inner;
                     const int64_t rest = column / to.inner;
                     const int64_t b = rest / after, a = rest % after;
                     T& target = y[base + to.before[static_cast<size_t>(b)] +
                                   to.after[static_cast<size_t>(a)] + inner];
                     const T read = value[((b * places + place) * after + a) * to.inner + inner];
                     if constexpr (kAdd) {
                       add_to(target, read);
                     } else {
                       target = read;
                     }
                   }
                 }
               });
}

void index_put(const Out& out, const In& self, InList indices, const In& given, bool accumulate) {
  const IndexedElements to("index_put", self, indices);
  const Source unaliased(given, out);
  const In& values = unaliased.in();
  start_from(out, self);
  if (values.numel == 0 || count_elements(to.result_sizes) == 0) return;
  if (accumulate) {
    with_type(out.dtype, [&]<class T>() { put<T, true>(out, to, values); });
  } else {
    with_bits(out.dtype, [&]<class T>() { put<T, false>(out, to, values); });
  }
}

}  // namespace

LS_KERNEL(CPU, "_unsafe_index.Tensor", index, Strides::kContiguous);
LS_KERNEL(CPU, "_unsafe_index_put", index_put, Strides::kContiguous);

}  // namespace lockstep::cpu
