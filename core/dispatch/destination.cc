#include "core/dispatch/destination.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/parallel.h"
#include "core/device/copies.h"
#include "core/dispatch/result_places.h"
#include "core/dispatch/run_kernel.h"
#include "core/tensor/inference_tensor.h"
#include "core/tensor/storage_extent.h"

namespace lockstep::structured {

namespace {

/// `count` places, `stride` bytes apart.
struct Steps {
  int64_t stride;
  int64_t count;

  int64_t reach() const { return stride * (count - 1); }
};

/// Returns whether `target` is a sum of one offset from each of `steps`, which are sorted by
/// descending stride. Returns true, the conservative answer, after `budget` trials.
bool reachable(std::span<const Steps> steps, int64_t target, int& budget) {
  if (steps.empty()) return target == 0;
  int64_t rest = 0;
  for (const Steps& inner : steps.subspan(1)) rest += inner.reach();
  const int64_t stride = steps[0].stride;
  if (target < 0 || target > rest + steps[0].reach()) return false;
  const int64_t first = target > rest ? (target - rest + stride - 1) / stride : 0;
  const int64_t last = std::min(steps[0].count - 1, target / stride);
  for (int64_t i = first; i <= last; ++i) {
    if (--budget < 0 || reachable(steps.subspan(1), target - i * stride, budget)) return true;
  }
  return false;
}

/// Returns whether `a` and `b` may have a byte in common. False is certain: for columns side by
/// side, for example.
bool may_share(const TensorImpl& a, const TensorImpl& b) {
  // A byte of a is a byte of b if an offset in a minus an offset in b is the distance between their
  // starts. Counting b's offsets backwards from its end turns that into one sum of both.
  SmallVector<Steps, 12> steps;
  const int64_t a_item = static_cast<int64_t>(size_of(a.dtype));
  const int64_t b_item = static_cast<int64_t>(size_of(b.dtype));
  int64_t target = b.offset * b_item - a.offset * a_item + b_item - 1;
  steps.push_back({1, a_item + b_item - 1});
  for (size_t i = 0; i < a.sizes.size(); ++i) steps.push_back({a.strides[i] * a_item, a.sizes[i]});
  for (size_t i = 0; i < b.sizes.size(); ++i) {
    steps.push_back({b.strides[i] * b_item, b.sizes[i]});
    target += steps.back().reach();
  }
  std::sort(steps.begin(), steps.end(),
            [](const Steps& x, const Steps& y) { return x.stride > y.stride; });
  SmallVector<Steps, 12> merged;
  for (const Steps& next : steps) {
    if (next.stride == 0 || next.count == 1) continue;
    if (!merged.empty() && merged.back().stride == next.stride) {
      merged.back().count += next.count - 1;
    } else {
      merged.push_back(next);
    }
  }
  int budget = 10000;  // bounds the search, which is exponential in the number of dimensions
  return reachable(std::span<const Steps>(merged.data(), merged.size()), target, budget);
}

/// Whether two tensors without gaps cover the same bytes in the same order.
bool is_same_range(const TensorImpl& a, const TensorImpl& b) {
  const auto bytes = [](const TensorImpl& impl, int64_t elements) {
    return elements * static_cast<int64_t>(size_of(impl.dtype));
  };
  return bytes(a, a.offset) == bytes(b, b.offset) && bytes(a, a.numel) == bytes(b, b.numel) &&
         a.strides == b.strides;
}

/// While alive, kernels called on this thread run single-threaded.
class OnOneThread {
 public:
  OnOneThread() : before_(num_threads()) { set_num_threads(1); }
  ~OnOneThread() { set_num_threads(before_); }
  OnOneThread(const OnOneThread&) = delete;
  OnOneThread& operator=(const OnOneThread&) = delete;

 private:
  int before_;
};

/// A result where a ResultPlaces says, or else in memory of its own.
Tensor place_or_allocate(const Operator& op, const OutputSpec& spec, Device device) {
  if (!ResultPlaces::are_given()) [[likely]]
    return allocate(spec, device);
  const Dims strides = spec.strides ? *spec.strides : contiguous_strides(spec.sizes);
  const size_t bytes =
      spec.present
          ? storage_bytes(op.name(), storage_extent(op.name(), spec.sizes, strides), spec.dtype)
          : 0;
  Ref<Storage> memory = ResultPlaces::take(op, bytes, device);
  if (!memory || !spec.present) return allocate(spec, device);
  auto impl = make_ref<TensorImpl>(std::move(memory), spec.sizes, strides, 0, spec.dtype);
  impl->inference = detail::inference_mode;
  return Tensor(std::move(impl));
}

}  // namespace

Tensor allocate(const OutputSpec& spec, Device device) {
  if (!spec.present) return {};
  return spec.strides ? empty_strided_tensor(spec.sizes, *spec.strides, spec.dtype, device)
                      : empty_tensor(spec.sizes, spec.dtype, device);
}

Target::Target(const Preparation& preparation, const OutputSpec& spec, Device device)
    : result_(place_or_allocate(preparation.op, spec, device)) {
  if (spec.present) choose_place(preparation, spec.dtype, ReadBack::kNo);
}

Target::Target(const Preparation& preparation, const OutputSpec& spec, const Tensor& destination,
               bool resizable, ReadBack read_back)
    : result_(destination) {
  const std::string_view op = preparation.op.name();
  check_inference_write(op, destination);
  if (!same(destination.sizes(), spec.sizes)) {
    LS_CHECK(resizable, ShapeError,
             "[{}] the result does not fit in place: expected shape {}, got {}. Use the form that "
             "returns a new tensor.",
             op, destination.shape(), to_string(spec.sizes));
    LS_CHECK(read_back == ReadBack::kNo, ShapeError,
             "[{}] out= is also an input and cannot be resized: expected shape {}, got {}. Give "
             "another tensor.",
             op, to_string(spec.sizes), destination.shape());
    LS_CHECK(!destination.is_view(), ShapeError,
             "[{}] out= is a view and cannot be resized: expected shape {}, got {}. Give a tensor "
             "of the right shape.",
             op, to_string(spec.sizes), destination.shape());
    TensorImpl& impl = *destination.impl();
    const size_t bytes = storage_bytes(op, count_elements(spec.sizes), impl.dtype);
    if (bytes > impl.storage->bytes()) impl.storage->resize(bytes);
    impl.sizes = spec.sizes;
    impl.strides = contiguous_strides(spec.sizes);
    impl.offset = 0;
    impl.refresh();
  }
  const DType to = destination.dtype();
  const bool castable = spec.dtype == to ||
                        (!spec.exact_dtype &&
                         (is_floating(to) || (!is_floating(spec.dtype) &&
                                              (to != DType::kBool || spec.dtype == DType::kBool))));
  LS_CHECK(castable, DTypeError,
           "[{}] the result cannot be stored: expected a destination of {}, got {}. Cast it first.",
           op, to_string(spec.dtype), to_string(to));
  LS_CHECK(!repeats_elements(*destination.impl()), ShapeError,
           "[{}] the destination's elements overlap (an expanded tensor?): expected each to have "
           "its own memory, got shape {} with strides {}. clone() it first.",
           op, destination.shape(), to_string(destination.strides()));
  shares_places_ =
      !destination.is_contiguous() && may_self_overlap(destination.sizes(), destination.strides());
  choose_place(preparation, spec.dtype, shares_places_ ? ReadBack::kHazard : read_back);
}

void Target::choose_place(const Preparation& preparation, DType dtype, ReadBack read_back) {
  const TensorImpl& impl = *result_.impl();
  const bool fits = impl.dtype == dtype && read_back != ReadBack::kHazard &&
                    (preparation.strides == Strides::kAny || impl.contiguous);
  if (fits) [[likely]] {
    out_.refer_to(impl);
    return;
  }
  temporary_ = empty_tensor(impl.sizes, dtype, result_.device());
  out_.refer_to(*temporary_.impl());
  if (preparation.execution == Execution::kShapes) return;
  count_hidden_copy(preparation.op.name(), result_,
                    impl.dtype != dtype              ? "the result is cast into the destination"
                    : shares_places_                 ? "the destination's elements may overlap"
                    : read_back == ReadBack::kHazard ? "the destination is also read"
                                                     : "the kernel cannot write these strides");
}

void Target::finish(const Preparation& preparation) {
  if (!temporary_.defined() || preparation.execution == Execution::kShapes) return;
  if (!shares_places_) return copy_elements(preparation.backend, result_, temporary_);
  const OnOneThread in_order;  // where elements overlap, the same one is always written last
  copy_elements(preparation.backend, result_, temporary_);
}

bool repeats_elements(const TensorImpl& impl) {
  if (impl.contiguous || impl.numel == 0) return false;
  for (size_t i = 0; i < impl.sizes.size(); ++i) {
    if (impl.strides[i] == 0 && impl.sizes[i] > 1) return true;
  }
  return false;
}

Sharing check_overlap(const Operator& op, const Tensor& destination, const Tensor& input) {
  const TensorImpl& a = *destination.impl();
  const TensorImpl& b = *input.impl();
  if (&a == &b) return Sharing::kAll;
  if (!(a.storage == b.storage) || a.numel == 0 || b.numel == 0) return Sharing::kNone;
  if (a.offset == b.offset && a.dtype == b.dtype && a.sizes == b.sizes && a.strides == b.strides) {
    return Sharing::kAll;
  }
  if (!may_share(a, b)) return Sharing::kNone;
  const bool gaps = !is_dense(a.sizes, a.strides) || !is_dense(b.sizes, b.strides);
  LS_CHECK(gaps || is_same_range(a, b), ShapeError,
           "[{}] the destination shares part of its memory with an input: expected none or all of "
           "it, got shapes {} and {}. clone() the input first.",
           op.name(), destination.shape(), input.shape());
  return Sharing::kSome;
}

}  // namespace lockstep::structured
