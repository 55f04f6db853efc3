#include "core/dispatch/operator.h"

#include "core/base/check.h"

namespace lockstep {

std::string_view name(OpKind kind) {
  static constexpr std::string_view kNames[] = {"structured", "view", "composite", "dynamic",
                                                "host value"};
  return kNames[static_cast<int>(kind)];
}

std::string_view name(Autocast autocast) {
  static constexpr std::string_view kNames[] = {"none", "lower precision", "f32", "promote"};
  return kNames[static_cast<int>(autocast)];
}

std::string to_string(Site site) {
  return site.line == 0 ? std::string(site.file) : fmt::format("{}:{}", site.file, site.line);
}

KeySet Operator::keys_of(std::span<const Value> arguments) const {
  KeySet keys;
  KeySet chosen;
  bool takes_device = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Value& value = arguments[i];
    if (value.is_tensor()) {
      if (!value.tensor().defined()) throw_undefined_argument();
      keys |= value.tensor().key_set();
    } else if (value.is_tensor_list()) {
      const bool may_be_absent = schema_.arguments[i].type.optional_element;
      for (const Tensor& tensor : value.tensors()) {
        if (tensor.defined() || !may_be_absent) keys |= tensor.key_set();
      }
    } else if (schema_.arguments[i].type.base == BaseType::kDevice) {
      takes_device = true;
      if (!value.is_none()) chosen |= backend_key(value.to_device().type);
    }
  }
  if (!chosen.empty()) keys = (keys - KeySet::backends()) | chosen;
  if (takes_device && (keys & KeySet::backends()).empty()) {
    keys |= backend_key(default_device().type);
  }
  const detail::ThreadKeys& thread = detail::thread_keys;
  return ((keys | thread.included) - thread.excluded) & mask_;
}

void Operator::call_boxed(Stack& stack) const {
  LS_CHECK(stack.arguments().size() == schema_.arguments.size(), DispatchError,
           "[{}] wrong number of arguments: expected {} ({}), got {}.", name(),
           schema_.arguments.size(), schema_.to_string(), stack.arguments().size());
  const KeySet keys = keys_of(stack.arguments());
  if (keys.empty()) throw_missing(keys);
  redispatch_boxed(keys, stack);
}

Reason Operator::reason(Key key) const {
  const Reason own = cell(key).reason;
  const bool has_own = own == Reason::kKernel || own == Reason::kBoxedKernel;
  const bool borrows = form_ != OpForm::kFunctional && KeySet::backends().has(key);
  return borrows && !has_own ? root().reason(key) : own;
}

std::string Operator::explain(Key key) const {
  const Cell& own = cell(key);
  switch (reason(key)) {
    case Reason::kKernel:
    case Reason::kBoxedKernel: {
      const bool borrowed = own.reason != Reason::kKernel && own.reason != Reason::kBoxedKernel;
      const Cell& found = borrowed ? root().cell(key) : own;
      return fmt::format("{}kernel at {}", found.boxed != nullptr ? "boxed " : "",
                         to_string(found.site));
    }
    case Reason::kQueued:
      return "queued: kernel at " + to_string(root().cell(key).site);
    case Reason::kComposite:
      return "composite: its body";
    case Reason::kView:
      return "view: geometry only";
    case Reason::kObserver:
      return "tells observers";
    case Reason::kShapes:
      return "shape rule only";
    case Reason::kMemory:
      return "memory only";
    case Reason::kFallback:
      return "fallback of the key";
    case Reason::kMissing:
      return "missing";
    case Reason::kSkipped:
      return "skipped";
  }
  return "";
}

void Operator::throw_missing(KeySet keys) const {
  LS_CHECK(defined_, DispatchError,
           "[{}] the operator is defined no longer: the plug-in that brought it was unloaded.",
           name());
  std::string registered;
  for (int i = 0; i < kKeyCount; ++i) {
    const Reason found = reason(static_cast<Key>(i));
    if (found == Reason::kMissing || found == Reason::kSkipped || found == Reason::kFallback ||
        found == Reason::kObserver) {
      continue;
    }
    registered +=
        fmt::format("{}{}", registered.empty() ? "" : ", ", lockstep::name(static_cast<Key>(i)));
  }
  const bool by_values = kind_ == OpKind::kDynamic || kind_ == OpKind::kHostValue;
  if (by_values && !keys.empty() && keys.highest() == Key::kMeta) {
    throw DispatchError(
        fmt::format("[{}] cannot run on meta: {} depends on elements, and tensors on meta have "
                    "none: {}. Call it "
                    "with tensors that have them.",
                    name(), kind_ == OpKind::kDynamic ? "the size of its result" : "its result",
                    schema_.to_string()));
  }
  for (const Argument& argument : schema_.arguments) {
    if (!keys.empty() || !argument.type.list || argument.type.base != BaseType::kTensor) continue;
    throw ShapeError(fmt::format(
        "[{}] expected at least one tensor in \"{}\", got none: nothing says where to run.", name(),
        argument.name));
  }
  if (keys.empty()) {
    throw DispatchError(fmt::format(
        "[{}] no kernel: the call has no tensor that says where to run. Registered: {}.", name(),
        registered));
  }
  throw DispatchError(fmt::format(
      "[{}] no kernel for {} (call keys {}). Registered: {}. `lockstep ops {}` shows the table.",
      name(), lockstep::name(keys.highest()), to_string(keys), registered, name()));
}

void Operator::throw_undefined_argument() const {
  throw DispatchError(fmt::format(
      "[{}] a tensor argument is undefined: expected tensors for {}. Pass one with elements.",
      name(), schema_.to_string()));
}

}  // namespace lockstep
