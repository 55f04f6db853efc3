#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/ops/factory/factory.h"
#include "core/tensor/tensor.h"

namespace lockstep::optim {

/// What tests/optim/record_reference.py recorded.
inline const nlohmann::json& reference() {
  static const nlohmann::json kReference = [] {
    std::ifstream file(std::string(LOCKSTEP_SOURCE_DIR) + "/tests/optim/reference.json");
    return nlohmann::json::parse(file);
  }();
  return kReference;
}

/// The parameters that the script begins with: 0.5, 0.4, ... in shapes [2, 3] and [2].
inline std::vector<Tensor> start(DType dtype) {
  std::vector<double> values;
  for (int i = 0; i < 8; ++i) values.push_back(0.5 - 0.1 * i);
  const Tensor all = tensor_from(values, {8}).to(dtype);
  std::vector<Tensor> parameters = {all.slice(0, 0, 6).reshape({2, 3}).clone(),
                                    all.slice(0, 6, 8).clone()};
  for (const Tensor& parameter : parameters) parameter.set_requires_grad();
  return parameters;
}

/// Sets the script's gradients: 0.8 p + sin(0.7 step + i); the second parameter has none in every
/// third step.
inline void set_gradients(const std::vector<Tensor>& parameters, int step) {
  int first = 0;
  for (size_t number = 0; number < parameters.size(); ++number) {
    const Tensor& parameter = parameters[number];
    std::vector<double> waves;
    for (int64_t i = 0; i < parameter.numel(); ++i) waves.push_back(std::sin(0.7 * step + first++));
    const Tensor wave = tensor_from(waves, parameter.sizes()).to(parameter.dtype());
    const Tensor scaled = parameter.detach().mul(full({}, 0.8, {parameter.dtype()}));
    parameter.set_grad(number == 1 && step % 3 == 0 ? Tensor() : scaled.add(wave));
  }
}

/// The elements of all tensors, in order.
inline std::vector<double> elements(const std::vector<Tensor>& tensors) {
  std::vector<double> values;
  for (const Tensor& tensor : tensors) {
    const Tensor flat = tensor.detach().to(DType::kF64).reshape({-1}).contiguous();
    values.insert(values.end(), flat.data<double>(), flat.data<double>() + flat.numel());
  }
  return values;
}

/// Expects |got - want| <= tolerance * max(1, |want|) element by element.
inline void expect_near(const std::vector<double>& got, const std::vector<double>& want,
                        double tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], tolerance * std::max(1.0, std::abs(want[i]))) << what << ", " << i;
  }
}

}  // namespace lockstep::optim
