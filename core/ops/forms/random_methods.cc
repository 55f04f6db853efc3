// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/ops/forms/form.h"

namespace lockstep {

Tensor Tensor::bernoulli(Generator* generator) const {
  return form<Tensor(const Tensor&, Generator*), "bernoulli">()(*this, generator);
}
Tensor Tensor::bernoulli(const Tensor& p, Generator* generator) const {
  return form<Tensor(const Tensor&, const Tensor&, Generator*), "bernoulli.Tensor">()(*this, p, generator);
}
Tensor Tensor::bernoulli(double p, Generator* generator) const {
  return form<Tensor(const Tensor&, double, Generator*), "bernoulli.p">()(*this, p, generator);
}
const Tensor& Tensor::bernoulli_(const Tensor& p, Generator* generator) const {
  return form<const Tensor&(const Tensor&, const Tensor&, Generator*), "bernoulli_.Tensor">()(*this, p, generator);
}
const Tensor& Tensor::bernoulli_(double p, Generator* generator) const {
  return form<const Tensor&(const Tensor&, double, Generator*), "bernoulli_.float">()(*this, p, generator);
}
const Tensor& Tensor::dropout_(double p, bool train) const {
  return form<const Tensor&(const Tensor&, double, bool), "dropout_">()(*this, p, train);
}
Tensor Tensor::exponential(double lambd, Generator* generator) const {
  return form<Tensor(const Tensor&, double, Generator*), "exponential">()(*this, lambd, generator);
}
const Tensor& Tensor::exponential_(double lambd, Generator* generator) const {
  return form<const Tensor&(const Tensor&, double, Generator*), "exponential_">()(*this, lambd, generator);
}
Tensor Tensor::multinomial(int64_t num_samples, bool replacement, Generator* generator) const {
  return form<Tensor(const Tensor&, int64_t, bool, Generator*), "multinomial">()(*this, num_samples, replacement, generator);
}
Tensor Tensor::normal(double mean, double std, Generator* generator) const {
  return form<Tensor(const Tensor&, double, double, Generator*), "normal">()(*this, mean, std, generator);
}
const Tensor& Tensor::normal_(double mean, double std, Generator* generator) const {
  return form<const Tensor&(const Tensor&, double, double, Generator*), "normal_">()(*this, mean, std, generator);
}
Tensor Tensor::random(Generator* generator) const {
  return form<Tensor(const Tensor&, Generator*), "random">()(*this, generator);
}
Tensor Tensor::random(int64_t from, std::optional<int64_t> to, Generator* generator) const {
  return form<Tensor(const Tensor&, int64_t, std::optional<int64_t>, Generator*), "random.from">()(*this, from, to, generator);
}
Tensor Tensor::random(int64_t to, Generator* generator) const {
  return form<Tensor(const Tensor&, int64_t, Generator*), "random.to">()(*this, to, generator);
}
const Tensor& Tensor::random_(Generator* generator) const {
  return form<const Tensor&(const Tensor&, Generator*), "random_">()(*this, generator);
}
const Tensor& Tensor::random_(int64_t from, std::optional<int64_t> to, Generator* generator) const {
  return form<const Tensor&(const Tensor&, int64_t, std::optional<int64_t>, Generator*), "random_.from">()(*this, from, to, generator);
}
const Tensor& Tensor::random_(int64_t to, Generator* generator) const {
  return form<const Tensor&(const Tensor&, int64_t, Generator*), "random_.to">()(*this, to, generator);
}
Tensor Tensor::uniform(double from, double to, Generator* generator) const {
  return form<Tensor(const Tensor&, double, double, Generator*), "uniform">()(*this, from, to, generator);
}
const Tensor& Tensor::uniform_(double from, double to, Generator* generator) const {
  return form<const Tensor&(const Tensor&, double, double, Generator*), "uniform_">()(*this, from, to, generator);
}

}  // namespace lockstep
