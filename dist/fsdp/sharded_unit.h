#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dist/fsdp/sharded_model.h"
#include "dist/fsdp/unit_gradients.h"
#include "dist/fsdp/unit_values.h"

namespace lockstep::dist {

/// A module whose parameters are gathered together, and their gradients summed together.
struct ShardedModel::Unit {
  Unit(std::string name, std::vector<NamedTensor> parameters, const UnitValuesOptions& how,
       const GradientSumOptions& options)
      : values(std::move(name), std::move(parameters), how),
        gradients(values.name(), values.parameters(), values.layout(), options) {}

  UnitValues values;
  UnitGradients gradients;
  bool in_backward = false;     ///< the backward in progress has come to it
  std::vector<uint32_t> parts;  ///< of this rank, by index in parts_
  bool told = false;            ///< on_reduced_ was called in this step
};

}  // namespace lockstep::dist
