#pragma once

#include <tuple>

#include "core/tensor/generator.h"
#include "core/tensor/tensor.h"

namespace lockstep {

// Operators that draw random numbers. Each call reserves one call number of its generator (null:
// this thread's `default_generator()`), and every element is a function of that number and of its
// row-major index only: the same bits for any number of threads.

/// Uniform in [0, 1).
Tensor rand(IntList sizes, TensorOptions options = {}, Generator* generator = nullptr);
/// Normal with mean 0 and variance 1 (Box & Muller 1958).
Tensor randn(IntList sizes, TensorOptions options = {}, Generator* generator = nullptr);
/// Integers uniform in [low, high). The dtype defaults to int64.
Tensor randint(int64_t low, int64_t high, IntList sizes, TensorOptions options = {},
               Generator* generator = nullptr);
/// A random permutation of 0 .. n-1. The dtype defaults to int64.
Tensor randperm(int64_t n, TensorOptions options = {}, Generator* generator = nullptr);

/// Fills self with numbers uniform in [from, to); from + u (to - from) may round up to `to`.
/// Floating dtypes.
const Tensor& uniform_(const Tensor& self, double from = 0, double to = 1,
                       Generator* generator = nullptr);
/// Fills self with integers uniform in [from, to), by default up to 2^63 - 1. The range must fit
/// into self's dtype; in floating dtypes the integers are rounded.
const Tensor& random_(const Tensor& self, int64_t from, std::optional<int64_t> to,
                      Generator* generator = nullptr);
/// Fills self with normal numbers. Floating dtypes.
const Tensor& normal_(const Tensor& self, double mean = 0, double std = 1,
                      Generator* generator = nullptr);
/// A tensor with self's shape and dtype, each element 1 with probability p, else 0.
Tensor bernoulli(const Tensor& self, double p, Generator* generator = nullptr);
const Tensor& bernoulli_(const Tensor& self, double p = 0.5, Generator* generator = nullptr);

/// Fills self with exponential numbers of density lambd e^(-lambd x), all positive. Floating
/// dtypes.
const Tensor& exponential_(const Tensor& self, double lambd = 1, Generator* generator = nullptr);
/// int64 numbers of `num_samples` categories drawn from weights [categories] or from each row of
/// [rows, categories], which need not sum to 1. Without `replacement` each category is drawn at
/// most once, and those of weight 0 only after all others. Waits for the device to check the
/// weights: Error for one that is negative or not finite, and for a row of zeros.
Tensor multinomial(const Tensor& self, int64_t num_samples, bool replacement = false,
                   Generator* generator = nullptr);

/// While training, zeroes each element with probability p and divides the others by 1 - p;
/// otherwise returns input itself.
Tensor dropout(const Tensor& input, double p, bool train);
/// dropout that also returns the bool mask of the elements kept. With `train` false all are kept.
std::tuple<Tensor, Tensor> native_dropout(const Tensor& input, double p,
                                          std::optional<bool> train = true);
/// grad * mask * scale.
Tensor native_dropout_backward(const Tensor& grad_output, const Tensor& mask, double scale);

}  // namespace lockstep
