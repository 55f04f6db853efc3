#include "train/run/run_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "autograd/graph.h"
#include "configs/run.pb.h"
#include "core/base/check.h"
#include "core/tensor/device.h"
#include "train/compiled_blocks.h"
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

std::vector<compiler::NamedGraph> compiled_graphs(const config::RunConfig& config) {
  config::RunConfig compiled = config;
  compiled.mutable_compile()->set_enabled(true);
  compiled.mutable_compile()->set_kernels(false);
  const DefaultDeviceGuard on_cpu(kCPU);
  const PlannedModel planned = planned_model(compiled, config.train().micro_batch_size());
  const std::shared_ptr<CompiledBlocks> blocks = compile_blocks(compiled, *planned.model);
  std::vector<Tensor> inputs = planned.make_inputs();
  for (const Tensor& each : inputs) each.zero_();  // token 0, class 0
  {
    const AutocastGuard region = autocast_region(precision_of(config), DeviceType::kCPU);
    planned.loss(inputs).backward();
  }
  std::vector<compiler::NamedGraph> graphs = blocks->graphs();
  LS_CHECK(!graphs.empty(), ConfigError, "[graph] no block is compiled: {}.",
           fmt::join(blocks->reasons(), "; "));
  return graphs;
}

}  // namespace lockstep::train
