#include "tests/ops/operator_forms.h"

#include <algorithm>
#include <map>

namespace lockstep {

namespace {

bool same_value(const Value& a, const Value& b) { return a.to_string() == b.to_string(); }

bool is_output(const Argument& argument) { return argument.written && argument.keyword_only; }

/// Maps the arguments of `functional` to `form`, or returns nothing when it is not a form of it: an
/// argument of `form` is missing in `functional`, or `form` lacks one that has no default.
std::optional<WritingForm> as_form(const Operator& form, const Operator& functional) {
  const std::vector<Argument>& own = form.schema().arguments;
  const std::vector<Argument>& others = functional.schema().arguments;
  WritingForm result{&form, !own.empty() && own[0].written, {}};
  for (const Argument& argument : own) {
    // The first arguments may differ in name: dropout_ has `self`, dropout has `input`.
    const bool first = result.in_place && result.places.empty();
    const int place = is_output(argument) ? -1
                      : first             ? 0
                                          : functional.schema().find(argument.name);
    if (!is_output(argument)) {
      if (place < 0 || others.empty() ||
          !(others[static_cast<size_t>(place)].type == argument.type))
        return {};
    }
    result.places.push_back(place);
  }
  for (size_t i = 0; i < others.size(); ++i) {
    const bool used = std::find(result.places.begin(), result.places.end(), static_cast<int>(i)) !=
                      result.places.end();
    if (!used && !others[i].has_default) return {};
  }
  return result;
}

/// The name without the `_` of an in-place form.
std::string base_name(const Operator& op) {
  std::string name = op.schema().name;
  if (op.schema().arguments.empty() || !op.schema().arguments[0].written) return name;
  if (name.ends_with('_')) name.pop_back();
  return name;
}

/// Whether the schema ends in `*, Tensor(a!)[] out) -> ()` and writes into nothing else.
bool only_writes_a_list(const Schema& schema) {
  const auto& arguments = schema.arguments;
  const auto writes = [](const Argument& argument) { return argument.written; };
  return schema.returns.empty() && std::count_if(arguments.begin(), arguments.end(), writes) == 1 &&
         is_output(arguments.back()) && arguments.back().type.list;
}

/// Whether an operator returns exactly its written arguments, in order; a written list is not
/// returned.
bool only_writes(const Operator& op) {
  const Schema& schema = op.schema();
  if (!schema.is_mutable()) return false;
  if (schema.returns.empty()) return only_writes_a_list(schema);
  size_t written = 0;
  for (const Argument& argument : schema.arguments) {
    if (argument.written && (argument.type.list || argument.type.base != BaseType::kTensor)) {
      return false;
    }
    written += argument.written ? 1 : 0;
  }
  for (size_t i = 0; i < schema.returns.size(); ++i) {
    if (schema.written_alias(i) < 0) return false;
  }
  return written == schema.returns.size();
}

using Forms = std::map<const Operator*, std::vector<WritingForm>>;

Forms find_forms() {
  Forms forms;
  for (const Operator* op : dispatcher().operators()) {
    if (!only_writes(*op)) continue;
    const Operator* best = nullptr;
    std::optional<WritingForm> best_form;
    size_t fewest = 0;
    for (const Operator* other : dispatcher().operators()) {
      if (other->schema().is_mutable() || other->schema().name != base_name(*op)) continue;
      std::optional<WritingForm> form = as_form(*op, *other);
      const size_t count = other->schema().arguments.size();
      const bool made = &op->root() == other;  // made by .in_place() or .out()
      if (!form || (best != nullptr && count >= fewest && !made)) continue;
      best = other;
      best_form = std::move(form);
      fewest = made ? 0 : count;
    }
    if (best != nullptr) forms[best].push_back(*best_form);
  }
  return forms;
}

const Forms& all_forms() {
  static const Forms kForms = find_forms();
  return kForms;
}

}  // namespace

std::optional<Arguments> WritingForm::arguments(const Operator& functional,
                                                const Arguments& given) const {
  const std::vector<Argument>& others = functional.schema().arguments;
  for (size_t i = 0; i < others.size(); ++i) {
    const bool used = std::find(places.begin(), places.end(), static_cast<int>(i)) != places.end();
    // A dtype argument is not needed: the destination determines the dtype.
    const bool says_dtype = others[i].type.base == BaseType::kDType;
    if (!used && !says_dtype && !same_value(given[i], others[i].default_value)) return {};
  }
  Arguments result;
  for (const int place : places) {
    result.push_back(place < 0 ? Value() : given[static_cast<size_t>(place)]);
  }
  return result;
}

std::vector<size_t> WritingForm::outputs() const {
  std::vector<size_t> found;
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] < 0) found.push_back(i);
  }
  return found;
}

const std::vector<WritingForm>& writing_forms(const Operator& functional) {
  static const std::vector<WritingForm> kNone;
  const auto found = all_forms().find(&functional);
  return found == all_forms().end() ? kNone : found->second;
}

bool is_writing_form(const Operator& op) {
  for (const auto& [functional, forms] : all_forms()) {
    for (const WritingForm& form : forms) {
      if (form.op == &op) return true;
    }
  }
  return false;
}

}  // namespace lockstep
