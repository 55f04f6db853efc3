#pragma once

#include <algorithm>
#include <array>

#include "core/base/parallel.h"
#include "core/tensor/kernel_arguments.h"
#include "core/tensor/memory_format.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/wide_sum.h"

namespace lockstep::cpu {

/// Layout of a tensor [batch, channels, places...], row-major or channels-last.
struct ChannelLayout {
  int64_t batch;
  int64_t channels;
  int64_t places;
  bool channels_last;

  explicit ChannelLayout(const TensorArg& tensor)
      : batch(tensor.size(0)),
        channels(tensor.size(1)),
        places(count_elements(tensor.sizes().subspan(2))),
        channels_last(suggests_channels_last(tensor.sizes(), tensor.strides())) {}
  int64_t per_channel() const { return batch * places; }
};

/// Adjacent channels of a channels-last tensor, processed row by row.
template <class T>
class Columns {
 public:
  using C = ComputeType<T>;
  static constexpr int64_t kMost = 64;
  /// One number per channel.
  using Numbers = std::array<C, kMost>;
  using Sums = WideSums<kMost>;

  /// `count` channels from `first` on. Sums use the order of the row-major kernels: one WideSum run
  /// over all samples if `one_run`, else one run per sample.
  Columns(const ChannelLayout& layout, int64_t first, int64_t count, bool one_run)
      : layout_(layout), first_(first), count_(count), one_run_(one_run) {}

  int64_t count() const { return count_; }
  /// Returns these channels' elements of a vector over all channels.
  template <class Vector>
  Numbers numbers(const Vector& vector) const {
    Numbers numbers{};
    for (int64_t k = 0; k < count_; ++k) numbers[k] = static_cast<C>(vector[first_ + k]);
    return numbers;
  }
  /// Calls visit(offset of the row's first channel, lane) for each row; a row's terms go to `lane`
  /// of a WideSums, which gives the summation order of a row-major channel.
  template <class Visit>
  void for_each_row(Visit visit) const {
    int64_t row = 0;
    for (int64_t n = 0; n < layout_.batch; ++n) {
      for (int64_t i = 0; i < layout_.places; ++i, ++row) {
        visit(row * layout_.channels + first_, (one_run_ ? row : i) % kWideLanes);
      }
    }
  }
  /// Returns for each channel k the sum of term(offset of the element, k).
  template <class Term>
  std::array<double, kMost> sum(Term term) const {
    Sums sums;
    for_each_row([&](int64_t row, int64_t lane) {
      sums.add(lane, count_, [&](int64_t k) { return term(row + k, k); });
    });
    std::array<double, kMost> totals{};
    for (int64_t k = 0; k < count_; ++k) totals[k] = sums.total(k);
    return totals;
  }
  /// Writes element(offset, k) to every element; k is the channel's index among these.
  template <class Element>
  void write(T* to, Element element) const {
    for_each_row([&](int64_t row, int64_t) {
      for_each_number(count_, [&](int64_t k) { to[row + k] = convert<T>(element(row + k, k)); });
    });
  }

 private:
  const ChannelLayout& layout_;
  int64_t first_;
  int64_t count_;
  bool one_run_;
};

inline constexpr int64_t kColumnsGrain = 16384;  // minimum elements per task

/// Calls body(columns, first channel) for all channels, in parallel. Wide groups of channels are
/// read faster, but each thread must get at least one group.
template <class T, class Body>
void for_each_columns(const ChannelLayout& layout, bool one_run, Body body) {
  constexpr int64_t kLeast = 16;
  const int64_t each = (layout.channels + num_threads() - 1) / num_threads();
  const int64_t group =
      std::min(Columns<T>::kMost, std::max<int64_t>(1, (each + kLeast - 1) / kLeast) * kLeast);
  const int64_t work = std::max<int64_t>(1, group * layout.per_channel());
  parallel_for(0, (layout.channels + group - 1) / group, std::max<int64_t>(1, kColumnsGrain / work),
               [&](int64_t begin, int64_t end) {
                 for (int64_t first = begin * group; first < end * group; first += group) {
                   const int64_t count = std::min(group, layout.channels - first);
                   body(Columns<T>(layout, first, count, one_run), first);
                 }
               });
}

}  // namespace lockstep::cpu
