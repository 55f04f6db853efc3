#include "core/dispatch/op.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/mutex.h"

namespace lockstep {

namespace {

void check_signature(const Schema& schema, const OpAdapters& adapters) {
  LS_CHECK(schema.arguments.size() == adapters.argument_types.size(), DispatchError,
           "[{}] schema and C++ signature differ: expected {} arguments, got {}.",
           schema.full_name(), schema.arguments.size(), adapters.argument_types.size());
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    LS_CHECK(schema.arguments[i].type == adapters.argument_types[i], DispatchError,
             "[{}] schema and C++ signature differ at argument {}: expected {}, got {}.",
             schema.full_name(), schema.arguments[i].name, to_string(schema.arguments[i].type),
             to_string(adapters.argument_types[i]));
  }
}

Schema in_place_schema(Schema schema) {
  LS_CHECK(!schema.arguments.empty() && schema.returns.size() == 1, DispatchError,
           "[{}] only an operator of one result and at least one tensor has an in-place form.",
           schema.full_name());
  schema.name += "_";
  schema.arguments[0].alias = schema.returns[0].alias = 'a';
  schema.arguments[0].written = schema.returns[0].written = true;
  return schema;
}

Schema out_schema(Schema schema, std::string_view overload) {
  LS_CHECK(schema.returns.size() == 1, DispatchError,
           "[{}] only an operator of one result has an out= form so far.", schema.full_name());
  schema.overload = overload;
  Argument out;
  out.name = "out";
  out.keyword_only = true;
  out.alias = schema.returns[0].alias = 'a';
  out.written = schema.returns[0].written = true;
  schema.arguments.push_back(std::move(out));
  return schema;
}

}  // namespace

OpDefinition::OpDefinition(std::string_view text, Site site) {
  Schema schema = parse_schema(text);
  const MutexLock lock(dispatcher().mutex_);
  op_ = &dispatcher().entry(schema.full_name());
  LS_CHECK(!op_->defined_, DispatchError, "[{}] defined twice: at {} and at {}.", op_->name(),
           to_string(op_->site_), to_string(site));
  op_->schema_ = std::move(schema);
  op_->site_ = site;
  op_->draws_random_numbers_ = std::ranges::any_of(
      op_->schema_.arguments,
      [](const Argument& argument) { return argument.type.base == BaseType::kGenerator; });
}

void OpDefinition::doc(std::string_view text) { op_->doc_ = text; }

void OpDefinition::kind(OpKind kind, AnyFunction definition, OpAdapters adapters) {
  check_signature(op_->schema_, adapters);
  const MutexLock lock(dispatcher().mutex_);
  op_->kind_ = kind;
  op_->definition_ = definition;
  op_->adapters_ = std::move(adapters);
  op_->alias_argument_ = op_->schema_.written_alias(0);
  for (const KernelRecord& record : op_->records_) dispatcher().check_kernel_type(*op_, record);
  op_->defined_ = true;
  dispatcher().resolve(*op_);
}

const Operator* OpDefinition::form(OpForm form, std::optional<std::string_view> overload,
                                   OpAdapters adapters) {
  const std::string wanted(overload.value_or(op_->schema_.overload));
  Schema schema =
      form == OpForm::kInPlace ? in_place_schema(op_->schema_) : out_schema(op_->schema_, wanted);
  schema.overload = wanted;
  OpDefinition other(schema.to_string(), op_->site_);
  other.op_->schema_ = std::move(schema);  // keeps defaults that do not print
  other.op_->form_ = form;
  other.op_->root_ = op_;
  op_->forms_.push_back(other.op_);
  if (form == OpForm::kInPlace) op_->has_in_place_ = true;
  other.op_->doc_ = op_->doc_;
  other.kind(op_->kind_, op_->definition_, std::move(adapters));
  return other.op_;
}

void OpDefinition::autocast(Autocast autocast) {
  const MutexLock lock(dispatcher().mutex_);
  op_->autocast_ = autocast;
  if (op_->defined_) dispatcher().resolve(*op_);
}
void OpDefinition::data(void* data) { op_->definition_data_ = data; }
void OpDefinition::derivative_data(void* data) { op_->derivative_.data = data; }
void OpDefinition::batching(BatchingRule rule, void* data) {
  op_->batching_ = rule;
  op_->batching_data_ = data;
}
void OpDefinition::allocates_only() {
  const MutexLock lock(dispatcher().mutex_);
  op_->allocates_only_ = true;
  op_->tags_.emplace_back("allocates_only");
  dispatcher().resolve(*op_);
}
void OpDefinition::flops(FlopFormula formula) { op_->flops_ = formula; }
void OpDefinition::tag(std::string_view tag) {
  op_->tags_.emplace_back(tag);
  if (tag == "nondeterministic_seeded") op_->draws_random_numbers_ = true;
}
void OpDefinition::derivative(Vjp vjp) { op_->derivative_.of_one = vjp; }
void OpDefinition::derivative(VjpOfMany vjp) { op_->derivative_.of_many = vjp; }
void OpDefinition::differentiable_outputs(uint64_t mask) {
  op_->derivative_.differentiable_outputs = mask;
}
void OpDefinition::not_differentiable(std::string_view reason) {
  op_->derivative_.not_differentiable_reason = reason;
}
void OpDefinition::saves(std::initializer_list<std::string_view> texts) {
  for (std::string_view text : texts) {
    op_->derivative_.saves.push_back(parse_save(op_->schema_, text));
  }
}

}  // namespace lockstep
