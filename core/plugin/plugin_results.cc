// Host functions for results without a shape rule: tensors that a kernel makes, and numbers.

#include "core/base/check.h"
#include "core/device/transfer.h"
#include "core/dispatch/call_op.h"
#include "core/plugin/plugin_call.h"

namespace lockstep {

namespace {

// The table of version 3 ended here.
static_assert(offsetof(ls_host, set_dynamic) ==
              offsetof(ls_host, launch) + sizeof(ls_host::launch));

void check_makes_results(const ls_call* call, const char* function) {
  LS_CHECK(call->packed == nullptr || call->made != nullptr, DispatchError,
           "[{}] {}: the operator has a shape rule, which described the results: expected "
           "result_view. Use set_dynamic instead of the rule.",
           call->op.name(), function);
  LS_CHECK(call->made != nullptr || call->results != nullptr, DispatchError,
           "[{}] {} is for kernels without a rule{}.", call->op.name(), function,
           std::string_view(function) == "set_value" ? " and bodies" : "");
}

/// Reference to result `index`; throws unless the index is below the schema's number of results.
Value& result_place(ls_call* call, SmallVector<Value, 4>& results, uint32_t index) {
  const size_t count = call->op.schema().returns.size();
  LS_CHECK(index < count, DispatchError, "[{}] there is no result {}: expected less than {}.",
           call->op.name(), index, count);
  while (results.size() <= index) results.emplace_back();
  return results[index];
}

[[noreturn]] void throw_other_type(const ls_call* call, uint32_t index, std::string_view got) {
  throw DispatchError(fmt::format(
      "[{}] result {} has the wrong type: expected {}, got {}. {}", call->op.name(), index,
      to_string(call->op.schema().returns[index].type), got, call->op.schema().to_string()));
}

int new_result(ls_call* call, uint32_t index, const ls_output_spec* spec, ls_tensor_view* view) {
  return guarded([&] {
    check_makes_results(call, "new_result");
    LS_CHECK(call->made != nullptr, DispatchError,
             "[{}] new_result is for kernels: a body passes results of operators to set_result.",
             call->op.name());
    Value& place = result_place(call, *call->made, index);
    if (!(call->op.schema().returns[index].type == Type{})) {
      throw_other_type(call, index, "a tensor");
    }
    LS_CHECK(place.is_none(), DispatchError, "[{}] new_result: result {} was made before.",
             call->op.name(), index);
    const OutputSpec output = checked_spec(call->op, spec);
    LS_CHECK(output.present, DispatchError,
             "[{}] new_result: result {} cannot be absent: expected a rank of at least 0.",
             call->op.name(), index);
    Tensor made = structured::allocate(output, call->packed->device);
    fill_view(view, made);
    place = Value(std::move(made));
  });
}

int set_value(ls_call* call, uint32_t index, const ls_value* value) {
  return guarded([&] {
    check_makes_results(call, "set_value");
    LS_CHECK(value != nullptr, DispatchError, "[{}] set_value: the value is NULL.",
             call->op.name());
    Value& place = result_place(call, call->made != nullptr ? *call->made : *call->results, index);
    const Type& type = call->op.schema().returns[index].type;
    LS_CHECK(call->made == nullptr || type.base != BaseType::kTensor, DispatchError,
             "[{}] set_value: result {} is a tensor: expected new_result.", call->op.name(), index);
    Value given = value_of(*value);
    if (!fits(type, given)) throw_other_type(call, index, given.to_string());
    place = type.base == BaseType::kFloat && !type.list ? Value(given.to_scalar().to_double())
                                                        : given.own();
  });
}

int read(ls_call* call, void* to, const void* from, size_t bytes) {
  return guarded([&] {
    LS_CHECK(call->packed != nullptr, DispatchError, "[{}] read is for kernels alone.",
             call->op.name());
    if (bytes == 0) return;
    LS_CHECK(to != nullptr && from != nullptr, DispatchError,
             "[{}] read: expected memory to copy from and to, got NULL.", call->op.name());
    transfer_bytes(to, kCPU, from, call->packed->device, bytes);
  });
}

int call_for_value(const char* name, const ls_value* arguments, uint32_t argument_count,
                   ls_value* result) {
  return guarded([&] {
    LS_CHECK(name != nullptr && result != nullptr, DispatchError,
             "[plugin] call_for_value: expected an operator's name and room for its result, got "
             "NULL.");
    const Operator& op = dispatcher().find(name);
    const auto& returns = op.schema().returns;
    LS_CHECK(returns.size() == 1 && is_number(returns[0].type), DispatchError,
             "[{}] call_for_value: expected an operator of one result that is a number: {}.",
             op.name(), op.schema().to_string());
    SmallVector<Value, 8> values;
    for (uint32_t i = 0; i < argument_count; ++i) values.push_back(value_of(arguments[i]));
    *result = {};
    set_scalar(*result, call_values(op, values)[0].to_scalar());
  });
}

}  // namespace

void add_result_functions(ls_host& host) {
  host.new_result = &new_result;
  host.set_value = &set_value;
  host.read = &read;
  host.call_for_value = &call_for_value;
}

}  // namespace lockstep
