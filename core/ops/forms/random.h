#pragma once

// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/tensor/tensor.h"

namespace lockstep {

Tensor bernoulli(const Tensor& self, Generator* generator = nullptr);
Tensor bernoulli(const Tensor& self, const Tensor& p, Generator* generator = nullptr);
const Tensor& bernoulli_out(const Tensor& out, const Tensor& self, const Tensor& p,
                            Generator* generator = nullptr);
const Tensor& bernoulli_out(const Tensor& out, const Tensor& self, double p = 0.5,
                            Generator* generator = nullptr);
const Tensor& bernoulli_out(const Tensor& out, const Tensor& self, Generator* generator);
const Tensor& bernoulli_(const Tensor& self, const Tensor& p, Generator* generator = nullptr);
const Tensor& dropout_(const Tensor& self, double p, bool train);
/// A tensor like self of exponential numbers of rate lambd.
Tensor exponential(const Tensor& self, double lambd = 1.0, Generator* generator = nullptr);
const Tensor& exponential_out(const Tensor& out, const Tensor& self, double lambd = 1.0,
                              Generator* generator = nullptr);
const Tensor& multinomial_out(const Tensor& out, const Tensor& self, int64_t num_samples,
                              bool replacement = false, Generator* generator = nullptr);
std::tuple<Tensor, Tensor> native_dropout_out(const Tensor& out0, const Tensor& out1,
                                              const Tensor& input, double p,
                                              std::optional<bool> train);
/// A tensor like self of normal numbers; ATen calls this form normal_functional.
Tensor normal(const Tensor& self, double mean = 0.0, double std = 1.0,
              Generator* generator = nullptr);
Tensor normal(const Tensor& mean, const Tensor& std, Generator* generator = nullptr);
const Tensor& normal_out(const Tensor& out, const Tensor& mean, const Tensor& std,
                         Generator* generator = nullptr);
Tensor normal(const Tensor& mean, double std, Generator* generator);
const Tensor& normal_out(const Tensor& out, const Tensor& mean, double std = 1.0,
                         Generator* generator = nullptr);
Tensor normal(double mean, const Tensor& std, Generator* generator = nullptr);
const Tensor& normal_out(const Tensor& out, double mean, const Tensor& std,
                         Generator* generator = nullptr);
const Tensor& normal_out(const Tensor& out, double mean, double std, IntList size,
                         Generator* generator = nullptr);
const Tensor& normal_out(const Tensor& out, const Tensor& self, double mean, double std,
                         Generator* generator = nullptr);
const Tensor& rand_out(const Tensor& out, IntList size, Generator* generator);
const Tensor& rand_out(const Tensor& out, IntList size);
const Tensor& rand_like_out(const Tensor& out, const Tensor& self, Generator* generator,
                            std::optional<MemoryFormat> memory_format = std::nullopt);
const Tensor& rand_like_out(const Tensor& out, const Tensor& self,
                            std::optional<MemoryFormat> memory_format = std::nullopt);
const Tensor& randint_out(const Tensor& out, int64_t high, IntList size, Generator* generator);
const Tensor& randint_out(const Tensor& out, int64_t low, int64_t high, IntList size,
                          Generator* generator);
const Tensor& randint_out(const Tensor& out, int64_t low, int64_t high, IntList size);
const Tensor& randint_out(const Tensor& out, int64_t high, IntList size);
const Tensor& randint_like_out(const Tensor& out, const Tensor& self, const Tensor& high,
                               Generator* generator,
                               std::optional<MemoryFormat> memory_format = std::nullopt);
const Tensor& randint_like_out(const Tensor& out, const Tensor& self, const Tensor& high,
                               std::optional<MemoryFormat> memory_format = std::nullopt);
const Tensor& randint_like_out(const Tensor& out, const Tensor& self, int64_t high,
                               Generator* generator,
                               std::optional<MemoryFormat> memory_format = std::nullopt);
const Tensor& randint_like_out(const Tensor& out, const Tensor& self, int64_t low, int64_t high,
                               std::optional<MemoryFormat> memory_format = std::nullopt);
const Tensor& randint_like_out(const Tensor& out, const Tensor& self, int64_t low, int64_t high,
                               Generator* generator,
                               std::optional<MemoryFormat> memory_format = std::nullopt);
const Tensor& randint_like_out(const Tensor& out, const Tensor& self, int64_t high,
                               std::optional<MemoryFormat> memory_format = std::nullopt);
const Tensor& randn_out(const Tensor& out, IntList size, Generator* generator);
const Tensor& randn_out(const Tensor& out, IntList size);
const Tensor& randn_like_out(const Tensor& out, const Tensor& self, Generator* generator,
                             std::optional<MemoryFormat> memory_format = std::nullopt);
const Tensor& randn_like_out(const Tensor& out, const Tensor& self,
                             std::optional<MemoryFormat> memory_format = std::nullopt);
/// A tensor like self of integers uniform from 0 to the largest that its dtype holds exactly.
Tensor random(const Tensor& self, Generator* generator = nullptr);
Tensor random(const Tensor& self, int64_t from, std::optional<int64_t> to,
              Generator* generator = nullptr);
const Tensor& random_out(const Tensor& out, const Tensor& self, int64_t from,
                         std::optional<int64_t> to, Generator* generator = nullptr);
const Tensor& random_out(const Tensor& out, const Tensor& self, Generator* generator = nullptr);
Tensor random(const Tensor& self, int64_t to, Generator* generator = nullptr);
const Tensor& random_out(const Tensor& out, const Tensor& self, int64_t to,
                         Generator* generator = nullptr);
const Tensor& random_(const Tensor& self, Generator* generator = nullptr);
const Tensor& random_(const Tensor& self, int64_t to, Generator* generator = nullptr);
const Tensor& randperm_out(const Tensor& out, int64_t n, Generator* generator);
const Tensor& randperm_out(const Tensor& out, int64_t n);
/// A tensor like self of numbers uniform in [from, to).
Tensor uniform(const Tensor& self, double from = 0.0, double to = 1.0,
               Generator* generator = nullptr);
const Tensor& uniform_out(const Tensor& out, const Tensor& self, double from = 0.0, double to = 1.0,
                          Generator* generator = nullptr);

}  // namespace lockstep
