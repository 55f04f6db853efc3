#include "core/dispatch/decompositions.h"

#include "core/base/check.h"
#include "core/dispatch/dispatcher.h"

namespace lockstep {

bool has_decomposition(const Operator& op) { return op.kind() == OpKind::kComposite; }

std::vector<const Operator*> decompositions() {
  std::vector<const Operator*> found = dispatcher().operators();
  std::erase_if(found, [](const Operator* op) { return !has_decomposition(*op); });
  return found;
}

void decompose(const Operator& op, Stack& stack) {
  LS_CHECK(has_decomposition(op), DispatchError,
           "[{}] has no decomposition: expected a composite, got a {} operator.", op.name(),
           name(op.kind()));
  LS_CHECK(stack.arguments().size() == op.schema().arguments.size(), DispatchError,
           "[{}] wrong number of arguments: expected {} ({}), got {}.", op.name(),
           op.schema().arguments.size(), op.schema().to_string(), stack.arguments().size());
  // No kernel is registered for kFunctionalize, so `direct` runs the body.
  const OpAdapters& adapters = op.adapters();
  adapters.unbox(op, Key::kFunctionalize, adapters.direct, stack);
}

}  // namespace lockstep
