#pragma once

#include <filesystem>
#include <string>

#include "core/tensor/device.h"

namespace lockstep {

/// The largest difference, and the name of its tensor.
struct Worst {
  double value = 0;
  std::string where = "-";

  void see(double difference, const std::string& name) {
    if (!(difference <= value)) {  // NaN counts as worst
      value = difference;
      where = name;
    }
  }
};

/// Differences between a run and PyTorch's.
struct ParityRun {
  static constexpr double kLossTolerance = 1e-5;  // absolute
  static constexpr double kNormTolerance = 1e-4;  // relative
  static constexpr double kGradientAbsolute = 1e-5;
  static constexpr double kGradientRelative = 1e-4;

  Worst loss;
  Worst grad_norm;
  Worst first_gradient;  ///< in units of the tolerance
  Worst final_weight;    ///< absolute, for information

  bool good() const {
    return loss.value <= kLossTolerance && grad_norm.value <= kNormTolerance &&
           first_gradient.value <= 1;
  }
};

/// Trains the model in `folder` like PyTorch's recorded run, data-parallel over `ranks` threads on
/// `device`, and compares every rank's losses, gradient norms, first gradients and final weights.
/// Throws ConfigError if that many ranks cannot share the batch, DeviceError for a missing device,
/// and DataError, CheckpointError or nlohmann::json::exception for a malformed folder.
ParityRun train_beside(const std::filesystem::path& folder, int ranks = 1, Device device = kCPU);

}  // namespace lockstep
