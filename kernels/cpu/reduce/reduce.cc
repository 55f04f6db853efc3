#include "core/dispatch/kernel.h"
#include "kernels/cpu/reduce/reduce_engine.h"
#include "kernels/cpu/reduce/sum.h"
#include "kernels/cpu/wide_vectors.h"

namespace lockstep::cpu {

namespace {

uint64_t mask_of(IntList dims, const In& self) { return dim_mask("reduce", dims, self.rank); }

/// Reads elements of type T as C.
template <class T, class C>
void read_converted(const std::byte* at, int64_t stride, C* to, int64_t n) {
  const T* from = reinterpret_cast<const T*>(at);
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) to[i] = convert<C>(from[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = convert<C>(from[i * stride]);
  }
}
template <class T, class C>
LS_WIDE_VECTORS void wide_read_converted(const std::byte* at, int64_t stride, C* to, int64_t n) {
  read_converted<T, C>(at, stride, to, n);
}
/// Reads elements of type T as 1 if they are nonzero, else 0.
template <class T>
void read_truth(const std::byte* at, int64_t stride, int32_t* to, int64_t n) {
  const T* from = reinterpret_cast<const T*>(at);
  for (int64_t i = 0; i < n; ++i) to[i] = convert<bool>(from[i * stride]) ? 1 : 0;
}

template <class Op>
typename ReduceEngine<Op>::Source source_of(const In& self) {
  using C = typename Op::Element;
  return with_type(self.dtype, [&]<class T>() -> typename ReduceEngine<Op>::Source {
    return {static_cast<const std::byte*>(self.address), sizeof(T), self.dtype,
            std::is_same_v<T, C>, for_this_cpu(&wide_read_converted<T, C>, &read_converted<T, C>)};
  });
}

/// Reduces with Op and stores each total, divided by the number of elements for a mean, in out's
/// dtype.
template <class Op>
void reduce_into(const Out& out, const In& self, IntList dims, bool mean = false) {
  using Engine = ReduceEngine<Op>;
  const ReducePlan plan = plan_reduction(self, mask_of(dims, self));
  const ResultPlaces places(out);
  const double count = static_cast<double>(plan.count);
  with_type(out.dtype, [&]<class T>() {
    T* results = out.data<T>();
    Engine::run(plan, source_of<Op>(self),
                [&](int64_t first, const typename Engine::Total* totals, int64_t n) {
                  for (int64_t i = 0; i < n; ++i) {
                    results[places[first + i]] =
                        mean ? convert<T>(static_cast<double>(totals[i]) / count)
                             : convert<T>(totals[i]);
                  }
                });
  });
}

/// Selects the compute type.
template <template <class> class Op>
void reduce_by_type(const Out& out, const In& self, IntList dims, bool mean = false) {
  if (self.dtype == DType::kF64) return reduce_into<Op<double>>(out, self, dims, mean);
  if (is_floating(self.dtype)) return reduce_into<Op<float>>(out, self, dims, mean);
  reduce_into<Op<int64_t>>(out, self, dims, mean);
}

void sum_dims(const Out& out, const In& self, std::optional<IntList> dims, bool,
              std::optional<DType>) {
  sum_over(out, self, dims.value_or(IntList()));
}
void sum(const Out& out, const In& self, std::optional<DType>) {
  reduce_by_type<SumOf>(out, self, {});
}
void mean_dims(const Out& out, const In& self, std::optional<IntList> dims, bool,
               std::optional<DType>) {
  reduce_by_type<SumOf>(out, self, dims.value_or(IntList()), true);
}
void mean(const Out& out, const In& self, std::optional<DType>) {
  reduce_by_type<SumOf>(out, self, {}, true);
}
void amax(const Out& out, const In& self, IntList dims, bool) {
  reduce_by_type<LargestOf>(out, self, dims);
}
void amin(const Out& out, const In& self, IntList dims, bool) {
  reduce_by_type<SmallestOf>(out, self, dims);
}
void max(const Out& out, const In& self) { reduce_by_type<LargestOf>(out, self, {}); }
void min(const Out& out, const In& self) { reduce_by_type<SmallestOf>(out, self, {}); }

/// Partial products of floats can leave the range of f32, so all are computed in f64.
void prod_dims(const Out& out, const In& self, IntList dims) {
  if (is_floating(self.dtype)) return reduce_into<ProductOf<double>>(out, self, dims);
  reduce_into<ProductOf<int64_t>>(out, self, dims);
}
void prod(const Out& out, const In& self, std::optional<DType>) { prod_dims(out, self, {}); }
void prod_dim(const Out& out, const In& self, int64_t dim, bool, std::optional<DType>) {
  prod_dims(out, self, {dim});
}

/// any is the maximum of the truth values, all the minimum.
template <class Op>
void reduce_truth(const Out& out, const In& self, uint64_t mask, int32_t of_nothing) {
  using Engine = ReduceEngine<Op>;
  const ReducePlan plan = plan_reduction(self, mask);
  typename Engine::Source source = with_type(self.dtype, [&]<class T>() -> typename Engine::Source {
    return {static_cast<const std::byte*>(self.address), sizeof(T), self.dtype, false,
            &read_truth<T>};
  });
  const ResultPlaces places(out);
  uint8_t* results = out.data<uint8_t>();  // bool has the same representation
  Engine::run(plan, source, [&](int64_t first, const int32_t* totals, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      results[places[first + i]] = static_cast<uint8_t>(plan.count == 0 ? of_nothing : totals[i]);
    }
  });
}
template <class Op>
void truth_over(const Out& out, const In& self, IntList dims, int32_t of_nothing) {
  reduce_truth<Op>(out, self, mask_of(dims, self), of_nothing);
}
/// No list reduces all dimensions, an empty list none.
uint64_t mask_of_list(std::optional<IntList> dims, const In& self) {
  return dims && dims->empty() ? 0 : mask_of(dims.value_or(IntList()), self);
}
void any_dims(const Out& out, const In& self, std::optional<IntList> dims, bool) {
  reduce_truth<LargestOf<int32_t>>(out, self, mask_of_list(dims, self), 0);
}
void any_dim(const Out& out, const In& self, int64_t dim, bool) {
  truth_over<LargestOf<int32_t>>(out, self, {dim}, 0);
}
void any(const Out& out, const In& self) { truth_over<LargestOf<int32_t>>(out, self, {}, 0); }
void all_dims(const Out& out, const In& self, std::optional<IntList> dims, bool) {
  reduce_truth<SmallestOf<int32_t>>(out, self, mask_of_list(dims, self), 1);
}
void all_dim(const Out& out, const In& self, int64_t dim, bool) {
  truth_over<SmallestOf<int32_t>>(out, self, {dim}, 1);
}
void all(const Out& out, const In& self) { truth_over<SmallestOf<int32_t>>(out, self, {}, 1); }

}  // namespace

void sum_over(const Out& out, const In& self, IntList dims) {
  reduce_by_type<SumOf>(out, self, dims);
}

LS_KERNEL(CPU, "sum", sum, Strides::kAny);
LS_KERNEL(CPU, "sum.dim_IntList", sum_dims, Strides::kAny);
LS_KERNEL(CPU, "mean", mean, Strides::kAny);
LS_KERNEL(CPU, "mean.dim", mean_dims, Strides::kAny);
LS_KERNEL(CPU, "prod", prod, Strides::kAny);
LS_KERNEL(CPU, "prod.dim_int", prod_dim, Strides::kAny);
LS_KERNEL(CPU, "amax", amax, Strides::kAny);
LS_KERNEL(CPU, "amin", amin, Strides::kAny);
LS_KERNEL(CPU, "max", max, Strides::kAny);
LS_KERNEL(CPU, "min", min, Strides::kAny);
LS_KERNEL(CPU, "any", any, Strides::kAny);
LS_KERNEL(CPU, "any.dim", any_dim, Strides::kAny);
LS_KERNEL(CPU, "any.dims", any_dims, Strides::kAny);
LS_KERNEL(CPU, "all", all, Strides::kAny);
LS_KERNEL(CPU, "all.dim", all_dim, Strides::kAny);
LS_KERNEL(CPU, "all.dims", all_dims, Strides::kAny);

}  // namespace lockstep::cpu
