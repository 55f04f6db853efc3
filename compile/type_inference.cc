#include "compile/type_inference.h"

#include "compile/graph/moved_graph.h"
#include "compile/interpreter.h"
#include "core/base/check.h"
#include "core/ops/factory/factory.h"
#include "core/tensor/random_state_guard.h"

namespace lockstep::compiler {

void infer_types(Graph& graph) {
  Graph plain = moved_graph(graph, kMeta);
  plain.outputs.clear();
  plain.writes.clear();
  for (const Node& node : plain.nodes) {
    for (const ValueId id : node.results) {
      if (id != kAbsent) plain.outputs.push_back(id);
    }
  }
  const std::vector<ValueId> made = plain.outputs;
  std::vector<Tensor> inputs;
  for (const ValueId id : plain.inputs) {
    const ValueType& type = type_of(plain, id);
    inputs.push_back(empty_strided_tensor(type.sizes, type.strides, type.dtype, kMeta));
  }
  const RandomStateGuard others_draw_the_same;
  const DefaultDeviceGuard on_meta(kMeta);
  const std::vector<Tensor> results = Interpreter(std::move(plain), {}).run(std::move(inputs));
  for (size_t i = 0; i < made.size(); ++i) {
    ValueType& type = graph.values[static_cast<size_t>(made[i])];
    LS_CHECK(results[i].dtype() == type.dtype, Error,
             "[compile] a rule gives {}, where {} was recorded.", to_string(results[i].dtype()),
             to_string(type.dtype));
    type.sizes = to_dims(results[i].sizes());
    type.strides = to_dims(results[i].strides());
  }
}

}  // namespace lockstep::compiler
