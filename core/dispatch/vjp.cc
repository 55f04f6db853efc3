#include "core/dispatch/vjp.h"

#include "core/base/check.h"

namespace lockstep {

namespace {

/// Ordinal among the tensor arguments, or -1.
int tensor_ordinal(const Schema& schema, std::string_view name) {
  int ordinal = 0;
  for (const Argument& argument : schema.arguments) {
    if (argument.type.base != BaseType::kTensor) continue;
    if (argument.name == name) return ordinal;
    ++ordinal;
  }
  return -1;
}

std::string_view next_word(std::string_view& text) {
  const size_t begin = text.find_first_not_of(", ");
  if (begin == std::string_view::npos) return text = {};
  const size_t end = std::min(text.find_first_of(", ", begin), text.size());
  const std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

}  // namespace

InputMeta::InputMeta(const InputMeta& other)
    : sizes(other.sizes),
      dtype(other.dtype),
      device(other.device),
      defined(other.defined),
      has_edge(other.has_edge),
      layout_(other.layout_ ? std::make_unique<Layout>(*other.layout_) : nullptr) {}

InputMeta& InputMeta::operator=(const InputMeta& other) { return *this = InputMeta(other); }

void InputMeta::describe(const TensorImpl& tensor) {
  sizes = tensor.sizes;
  dtype = tensor.dtype;
  device = tensor.storage->device();
  defined = true;
  const bool is_plain = tensor.contiguous && tensor.offset == 0;
  layout_ = is_plain ? nullptr : std::make_unique<Layout>(Layout{tensor.strides, tensor.offset});
}

Save parse_save(const Schema& schema, std::string_view text) {
  const std::string_view whole = text;
  Save save;
  const std::string_view what = next_word(text);
  if (const int argument = schema.find(what); argument >= 0) {
    save.index = static_cast<size_t>(argument);
  } else {
    save.is_output = true;
    save.index = what.size() == 7 ? static_cast<size_t>(what[6] - '0') : 0;
    LS_CHECK(what.starts_with("output") && what.size() <= 7 && save.index < schema.returns.size(),
             DispatchError, "[{}] saves \"{}\": expected an argument's name or output<i>.",
             schema.full_name(), whole);
  }
  if (next_word(text) == "for") {
    save.needed_for = 0;
    for (std::string_view name = next_word(text); !name.empty(); name = next_word(text)) {
      const int ordinal = tensor_ordinal(schema, name);
      LS_CHECK(ordinal >= 0, DispatchError, "[{}] saves \"{}\": there is no tensor argument {}.",
               schema.full_name(), whole, name);
      save.needed_for |= uint64_t{1} << ordinal;
    }
  }
  return save;
}

}  // namespace lockstep
