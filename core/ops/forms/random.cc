#include "core/ops/forms/random.h"

// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/ops/forms/form.h"

namespace lockstep {

Tensor bernoulli(const Tensor& self, Generator* generator) {
  return form<Tensor(const Tensor&, Generator*), "bernoulli">()(self, generator);
}
Tensor bernoulli(const Tensor& self, const Tensor& p, Generator* generator) {
  return form<Tensor(const Tensor&, const Tensor&, Generator*), "bernoulli.Tensor">()(self, p, generator);
}
const Tensor& bernoulli_out(const Tensor& out, const Tensor& self, const Tensor& p,
                            Generator* generator) {
  return form<const Tensor&(const Tensor&, const Tensor&, Generator*, const Tensor&), "bernoulli.Tensor_out">()(self, p, generator, out);
}
const Tensor& bernoulli_out(const Tensor& out, const Tensor& self, double p, Generator* generator) {
  return form<const Tensor&(const Tensor&, double, Generator*, const Tensor&), "bernoulli.float_out">()(self, p, generator, out);
}
const Tensor& bernoulli_out(const Tensor& out, const Tensor& self, Generator* generator) {
  return form<const Tensor&(const Tensor&, Generator*, const Tensor&), "bernoulli.out">()(self, generator, out);
}
const Tensor& bernoulli_(const Tensor& self, const Tensor& p, Generator* generator) {
  return form<const Tensor&(const Tensor&, const Tensor&, Generator*), "bernoulli_.Tensor">()(self, p, generator);
}
const Tensor& dropout_(const Tensor& self, double p, bool train) {
  return form<const Tensor&(const Tensor&, double, bool), "dropout_">()(self, p, train);
}
Tensor exponential(const Tensor& self, double lambd, Generator* generator) {
  return form<Tensor(const Tensor&, double, Generator*), "exponential">()(self, lambd, generator);
}
const Tensor& exponential_out(const Tensor& out, const Tensor& self, double lambd,
                              Generator* generator) {
  return form<const Tensor&(const Tensor&, double, Generator*, const Tensor&), "exponential.out">()(self, lambd, generator, out);
}
const Tensor& multinomial_out(const Tensor& out, const Tensor& self, int64_t num_samples,
                              bool replacement, Generator* generator) {
  return form<const Tensor&(const Tensor&, int64_t, bool, Generator*, const Tensor&), "multinomial.out">()(self, num_samples, replacement, generator, out);
}
std::tuple<Tensor, Tensor> native_dropout_out(const Tensor& out0, const Tensor& out1,
                                              const Tensor& input, double p,
                                              std::optional<bool> train) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, double, std::optional<bool>, const Tensor&, const Tensor&), "native_dropout.out">()(input, p, train, out0, out1);
}
Tensor normal(const Tensor& self, double mean, double std, Generator* generator) {
  return form<Tensor(const Tensor&, double, double, Generator*), "normal">()(self, mean, std, generator);
}
Tensor normal(const Tensor& mean, const Tensor& std, Generator* generator) {
  return form<Tensor(const Tensor&, const Tensor&, Generator*), "normal.Tensor_Tensor">()(mean, std, generator);
}
const Tensor& normal_out(const Tensor& out, const Tensor& mean, const Tensor& std,
                         Generator* generator) {
  return form<const Tensor&(const Tensor&, const Tensor&, Generator*, const Tensor&), "normal.Tensor_Tensor_out">()(mean, std, generator, out);
}
Tensor normal(const Tensor& mean, double std, Generator* generator) {
  return form<Tensor(const Tensor&, double, Generator*), "normal.Tensor_float">()(mean, std, generator);
}
const Tensor& normal_out(const Tensor& out, const Tensor& mean, double std, Generator* generator) {
  return form<const Tensor&(const Tensor&, double, Generator*, const Tensor&), "normal.Tensor_float_out">()(mean, std, generator, out);
}
Tensor normal(double mean, const Tensor& std, Generator* generator) {
  return form<Tensor(double, const Tensor&, Generator*), "normal.float_Tensor">()(mean, std, generator);
}
const Tensor& normal_out(const Tensor& out, double mean, const Tensor& std, Generator* generator) {
  return form<const Tensor&(double, const Tensor&, Generator*, const Tensor&), "normal.float_Tensor_out">()(mean, std, generator, out);
}
const Tensor& normal_out(const Tensor& out, double mean, double std, IntList size,
                         Generator* generator) {
  return form<const Tensor&(double, double, IntList, Generator*, const Tensor&), "normal.float_float_out">()(mean, std, size, generator, out);
}
const Tensor& normal_out(const Tensor& out, const Tensor& self, double mean, double std,
                         Generator* generator) {
  return form<const Tensor&(const Tensor&, double, double, Generator*, const Tensor&), "normal.out">()(self, mean, std, generator, out);
}
const Tensor& rand_out(const Tensor& out, IntList size, Generator* generator) {
  return form<const Tensor&(IntList, Generator*, const Tensor&), "rand.generator_out">()(size, generator, out);
}
const Tensor& rand_out(const Tensor& out, IntList size) {
  return form<const Tensor&(IntList, const Tensor&), "rand.out">()(size, out);
}
const Tensor& rand_like_out(const Tensor& out, const Tensor& self, Generator* generator,
                            std::optional<MemoryFormat> memory_format) {
  return form<const Tensor&(const Tensor&, Generator*, std::optional<MemoryFormat>, const Tensor&), "rand_like.generator_out">()(self, generator, memory_format, out);
}
const Tensor& rand_like_out(const Tensor& out, const Tensor& self,
                            std::optional<MemoryFormat> memory_format) {
  return form<const Tensor&(const Tensor&, std::optional<MemoryFormat>, const Tensor&), "rand_like.out">()(self, memory_format, out);
}
const Tensor& randint_out(const Tensor& out, int64_t high, IntList size, Generator* generator) {
  return form<const Tensor&(int64_t, IntList, Generator*, const Tensor&), "randint.generator_out">()(high, size, generator, out);
}
const Tensor& randint_out(const Tensor& out, int64_t low, int64_t high, IntList size,
                          Generator* generator) {
  return form<const Tensor&(int64_t, int64_t, IntList, Generator*, const Tensor&), "randint.low_generator_out">()(low, high, size, generator, out);
}
const Tensor& randint_out(const Tensor& out, int64_t low, int64_t high, IntList size) {
  return form<const Tensor&(int64_t, int64_t, IntList, const Tensor&), "randint.low_out">()(low, high, size, out);
}
const Tensor& randint_out(const Tensor& out, int64_t high, IntList size) {
  return form<const Tensor&(int64_t, IntList, const Tensor&), "randint.out">()(high, size, out);
}
const Tensor& randint_like_out(const Tensor& out, const Tensor& self, const Tensor& high,
                               Generator* generator, std::optional<MemoryFormat> memory_format) {
  return form<const Tensor&(const Tensor&, const Tensor&, Generator*, std::optional<MemoryFormat>, const Tensor&), "randint_like.Tensor_generator_out">()(self, high, generator, memory_format, out);
}
const Tensor& randint_like_out(const Tensor& out, const Tensor& self, const Tensor& high,
                               std::optional<MemoryFormat> memory_format) {
  return form<const Tensor&(const Tensor&, const Tensor&, std::optional<MemoryFormat>, const Tensor&), "randint_like.Tensor_out">()(self, high, memory_format, out);
}
const Tensor& randint_like_out(const Tensor& out, const Tensor& self, int64_t high,
                               Generator* generator, std::optional<MemoryFormat> memory_format) {
  return form<const Tensor&(const Tensor&, int64_t, Generator*, std::optional<MemoryFormat>, const Tensor&), "randint_like.generator_out">()(self, high, generator, memory_format, out);
}
const Tensor& randint_like_out(const Tensor& out, const Tensor& self, int64_t low, int64_t high,
                               std::optional<MemoryFormat> memory_format) {
  return form<const Tensor&(const Tensor&, int64_t, int64_t, std::optional<MemoryFormat>, const Tensor&), "randint_like.low_dtype_out">()(self, low, high, memory_format, out);
}
const Tensor& randint_like_out(const Tensor& out, const Tensor& self, int64_t low, int64_t high,
                               Generator* generator, std::optional<MemoryFormat> memory_format) {
  return form<const Tensor&(const Tensor&, int64_t, int64_t, Generator*, std::optional<MemoryFormat>, const Tensor&), "randint_like.low_generator_dtype_out">()(self, low, high, generator, memory_format, out);
}
const Tensor& randint_like_out(const Tensor& out, const Tensor& self, int64_t high,
                               std::optional<MemoryFormat> memory_format) {
  return form<const Tensor&(const Tensor&, int64_t, std::optional<MemoryFormat>, const Tensor&), "randint_like.out">()(self, high, memory_format, out);
}
const Tensor& randn_out(const Tensor& out, IntList size, Generator* generator) {
  return form<const Tensor&(IntList, Generator*, const Tensor&), "randn.generator_out">()(size, generator, out);
}
const Tensor& randn_out(const Tensor& out, IntList size) {
  return form<const Tensor&(IntList, const Tensor&), "randn.out">()(size, out);
}
const Tensor& randn_like_out(const Tensor& out, const Tensor& self, Generator* generator,
                             std::optional<MemoryFormat> memory_format) {
  return form<const Tensor&(const Tensor&, Generator*, std::optional<MemoryFormat>, const Tensor&), "randn_like.generator_out">()(self, generator, memory_format, out);
}
const Tensor& randn_like_out(const Tensor& out, const Tensor& self,
                             std::optional<MemoryFormat> memory_format) {
  return form<const Tensor&(const Tensor&, std::optional<MemoryFormat>, const Tensor&), "randn_like.out">()(self, memory_format, out);
}
Tensor random(const Tensor& self, Generator* generator) {
  return form<Tensor(const Tensor&, Generator*), "random">()(self, generator);
}
Tensor random(const Tensor& self, int64_t from, std::optional<int64_t> to, Generator* generator) {
  return form<Tensor(const Tensor&, int64_t, std::optional<int64_t>, Generator*), "random.from">()(self, from, to, generator);
}
const Tensor& random_out(const Tensor& out, const Tensor& self, int64_t from,
                         std::optional<int64_t> to, Generator* generator) {
  return form<const Tensor&(const Tensor&, int64_t, std::optional<int64_t>, Generator*, const Tensor&), "random.from_out">()(self, from, to, generator, out);
}
const Tensor& random_out(const Tensor& out, const Tensor& self, Generator* generator) {
  return form<const Tensor&(const Tensor&, Generator*, const Tensor&), "random.out">()(self, generator, out);
}
Tensor random(const Tensor& self, int64_t to, Generator* generator) {
  return form<Tensor(const Tensor&, int64_t, Generator*), "random.to">()(self, to, generator);
}
const Tensor& random_out(const Tensor& out, const Tensor& self, int64_t to, Generator* generator) {
  return form<const Tensor&(const Tensor&, int64_t, Generator*, const Tensor&), "random.to_out">()(self, to, generator, out);
}
const Tensor& random_(const Tensor& self, Generator* generator) {
  return form<const Tensor&(const Tensor&, Generator*), "random_">()(self, generator);
}
const Tensor& random_(const Tensor& self, int64_t to, Generator* generator) {
  return form<const Tensor&(const Tensor&, int64_t, Generator*), "random_.to">()(self, to, generator);
}
const Tensor& randperm_out(const Tensor& out, int64_t n, Generator* generator) {
  return form<const Tensor&(int64_t, Generator*, const Tensor&), "randperm.generator_out">()(n, generator, out);
}
const Tensor& randperm_out(const Tensor& out, int64_t n) {
  return form<const Tensor&(int64_t, const Tensor&), "randperm.out">()(n, out);
}
Tensor uniform(const Tensor& self, double from, double to, Generator* generator) {
  return form<Tensor(const Tensor&, double, double, Generator*), "uniform">()(self, from, to, generator);
}
const Tensor& uniform_out(const Tensor& out, const Tensor& self, double from, double to,
                          Generator* generator) {
  return form<const Tensor&(const Tensor&, double, double, Generator*, const Tensor&), "uniform.out">()(self, from, to, generator, out);
}

}  // namespace lockstep
