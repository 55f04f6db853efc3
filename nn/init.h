#pragma once

#include <string_view>

#include "core/tensor/generator.h"
#include "core/tensor/tensor.h"

namespace lockstep::nn::init {

// Initial values of parameters, written in place and not recorded; each returns its tensor. Numbers
// come from `generator`, by default this thread's default generator. Names, defaults and
// distributions are PyTorch's; the numbers drawn are not.

const Tensor& uniform_(const Tensor& tensor, double from = 0, double to = 1,
                       Generator* generator = nullptr);
const Tensor& normal_(const Tensor& tensor, double mean = 0, double std = 1,
                      Generator* generator = nullptr);
/// Normal numbers outside [least, most] are drawn again, by inversion of the distribution function.
const Tensor& trunc_normal_(const Tensor& tensor, double mean = 0, double std = 1,
                            double least = -2, double most = 2, Generator* generator = nullptr);
const Tensor& constant_(const Tensor& tensor, double value);
const Tensor& ones_(const Tensor& tensor);
const Tensor& zeros_(const Tensor& tensor);
/// The identity matrix, with zeros to the right or below.
const Tensor& eye_(const Tensor& tensor);
/// The identity of a convolution: weight [out, in, kernel...] passes channel i, at the centre of
/// the kernel, to feature i of each of `groups`.
const Tensor& dirac_(const Tensor& tensor, int64_t groups = 1);

/// The numbers of inputs and outputs of a weight [out, in, kernel...], times the elements of the
/// kernel.
struct Fans {
  int64_t in = 0;
  int64_t out = 0;
};
/// Throws ShapeError below two dimensions.
Fans fans_of(const Tensor& tensor);

/// Factor by which a nonlinearity shrinks the standard deviation: "linear" (also "conv1d", ...),
/// "sigmoid" 1, "tanh" 5/3, "relu" sqrt(2), "leaky_relu" sqrt(2 / (1 + param^2)), param 0.01 by
/// default, "selu" 3/4. Throws Error for others.
double calculate_gain(std::string_view nonlinearity, double param = 0.01);

/// Standard deviation gain sqrt(2 / (in + out)) (Glorot & Bengio 2010).
const Tensor& xavier_uniform_(const Tensor& tensor, double gain = 1,
                              Generator* generator = nullptr);
const Tensor& xavier_normal_(const Tensor& tensor, double gain = 1, Generator* generator = nullptr);

/// Which number a Kaiming initialisation keeps the scale for: of forward, or of backward.
enum class FanMode : uint8_t { kFanIn, kFanOut };
/// Standard deviation gain / sqrt(fan) for the gain of `nonlinearity`, whose slope `a` is read by
/// leaky_relu (He et al. 2015).
const Tensor& kaiming_uniform_(const Tensor& tensor, double a = 0, FanMode mode = FanMode::kFanIn,
                               std::string_view nonlinearity = "leaky_relu",
                               Generator* generator = nullptr);
const Tensor& kaiming_normal_(const Tensor& tensor, double a = 0, FanMode mode = FanMode::kFanIn,
                              std::string_view nonlinearity = "leaky_relu",
                              Generator* generator = nullptr);

/// A random matrix with orthonormal rows or columns, whichever are fewer, times `gain`; dimensions
/// after the first are one (Saxe et al. 2013). Computed in f64.
const Tensor& orthogonal_(const Tensor& tensor, double gain = 1, Generator* generator = nullptr);
/// Normal, with the share `sparsity` of each column set to 0. A matrix (Martens 2010).
const Tensor& sparse_(const Tensor& tensor, double sparsity, double std = 0.01,
                      Generator* generator = nullptr);

}  // namespace lockstep::nn::init
