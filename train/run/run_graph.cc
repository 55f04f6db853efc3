#include "train/run/run_graph.h"

#include "autograd/graph.h"
#include "configs/run.pb.h"
#include "core/tensor/device.h"
#include "train/precision.h"
#include "train/run/plan.h"

namespace lockstep::train {

std::string run_graph_dot(const config::RunConfig& config, bool every_block) {
  const DefaultDeviceGuard on_meta(kMeta);
  const PlannedModel planned = planned_model(config, config.train().micro_batch_size());
  Tensor loss;
  {
    const AutocastGuard region = autocast_region(precision_of(config), DeviceType::kMeta);
    loss = planned.loss(planned.make_inputs());
  }
  GraphToDotOptions options;
  options.fold_blocks = !every_block;
  for (const nn::NamedParameter& parameter : planned.model->named_parameters()) {
    options.names.emplace_back(parameter.tensor, parameter.name);
  }
  return graph_to_dot({loss}, options);
}

}  // namespace lockstep::train
