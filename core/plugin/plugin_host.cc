// Host functions that an operator of a plug-in calls while it runs. Each checks its arguments and
// lets no exception out. Those for ls_plugin_init are in core/plugin/plugin_definition.cc.

#include <cstring>

#include "core/base/check.h"
#include "core/base/parallel.h"
#include "core/dispatch/call_op.h"
#include "core/plugin/plugin_call.h"

namespace lockstep {

namespace {

static_assert(LS_BOOL == static_cast<int>(DType::kBool) && LS_F64 == static_cast<int>(DType::kF64));
static_assert(LS_BACKEND_META == static_cast<int>(DeviceType::kMeta));

/// Size of the struct in version 1; later members are filled in only if the caller's struct has
/// them.
constexpr size_t kFirstViewSize = offsetof(ls_tensor_view, device_type);

// --- what a call gives -------------------------------------------------------------------------

template <class Span>
size_t checked_index(const ls_call* call, const char* what, uint32_t index, const Span& of) {
  LS_CHECK(index < of.size(), DispatchError, "[{}] there is no {} {}: expected less than {}.",
           call->op.name(), what, index, of.size());
  return index;
}

[[noreturn]] void throw_not_here(const ls_call* call, const char* function) {
  throw DispatchError(
      fmt::format("[{}] {} is not for this kind of function. See core/plugin/plugin_abi.h.",
                  call->op.name(), function));
}

void check_view(const ls_tensor_view* view) {
  LS_CHECK(view != nullptr && view->size >= kFirstViewSize, DispatchError,
           "[plugin] a view's size is not set: expected at least {}. Set it to "
           "sizeof(ls_tensor_view).",
           kFirstViewSize);
}

void fill(ls_tensor_view* view, void* data, const int64_t* sizes, const int64_t* strides, int rank,
          DType dtype, Device device) {
  view->data = data;
  view->sizes = sizes;
  view->strides = strides;
  view->rank = rank;
  view->dtype = static_cast<int32_t>(dtype);
  if (view->size < sizeof(ls_tensor_view)) return;
  view->device_type = static_cast<int32_t>(device.type);
  view->device_index = device.index;
}

void fill(ls_tensor_view* view, const Tensor& tensor, bool with_data) {
  if (!tensor.defined()) {
    fill(view, nullptr, nullptr, nullptr, -1, DType::kF32, lockstep::kCPU);
    return;
  }
  const TensorImpl& impl = *tensor.impl();
  fill(view, with_data ? impl.data() : nullptr, impl.sizes.data(), impl.strides.data(),
       static_cast<int>(impl.sizes.size()), impl.dtype, impl.storage->device());
}

void fill(ls_tensor_view* view, const TensorArg& tensor, Device device) {
  fill(view, tensor.address, tensor.size_data, tensor.stride_data, tensor.rank, tensor.dtype,
       device);
}

}  // namespace

void fill_view(ls_tensor_view* view, const Tensor& tensor) {
  check_view(view);
  fill(view, tensor, true);
}

OutputSpec checked_spec(const Operator& op, const ls_output_spec* spec) {
  LS_CHECK(spec != nullptr && spec->size >= sizeof(ls_output_spec), DispatchError,
           "[plugin] a spec's size is not set: expected {}.", sizeof(ls_output_spec));
  OutputSpec output;
  output.dtype = checked_enum("dtype", spec->dtype, DType::kF64);
  output.present = spec->rank >= 0;
  if (!output.present) return output;
  const size_t rank = static_cast<size_t>(spec->rank);
  output.sizes.assign({spec->sizes, rank});
  count_elements(output.sizes);
  if (spec->strides == nullptr) return output;
  output.strides.emplace().assign({spec->strides, rank});
  LS_CHECK(is_dense(output.sizes, *output.strides), ShapeError,
           "[{}] the result's strides {} leave gaps or overlap for sizes {}.", op.name(),
           to_string(*output.strides), to_string(output.sizes));
  return output;
}

namespace {

[[noreturn]] void throw_not_a(const ls_call* call, const char* what, uint32_t index) {
  throw DispatchError(fmt::format("[{}] argument {} is no {}: {}.", call->op.name(), index, what,
                                  call->op.schema().to_string()));
}

const Type& argument_type(const ls_call* call, uint32_t index) {
  const std::vector<Argument>& arguments = call->op.schema().arguments;
  return arguments[checked_index(call, "argument", index, arguments)].type;
}

int argument_view(ls_call* call, uint32_t index, ls_tensor_view* view) {
  return guarded([&] {
    check_view(view);
    const Type& type = argument_type(call, index);
    if (type.base != BaseType::kTensor || type.list) throw_not_a(call, "tensor", index);
    if (call->packed != nullptr) {
      fill(view, call->packed->arguments[index].tensors[0], call->packed->device);
    } else if (call->outputs != nullptr) {
      static const Tensor kAbsent;
      const Value& value = call->values[index];
      fill(view, value.is_none() ? kAbsent : value.tensor(), false);
    } else {
      throw_not_here(call, "argument_view");
    }
  });
}

int list_length(ls_call* call, uint32_t index, uint32_t* length) {
  return guarded([&] {
    const Type& type = argument_type(call, index);
    if (type.base != BaseType::kTensor || !type.list) throw_not_a(call, "tensor list", index);
    if (call->vjp != nullptr) throw_not_here(call, "list_length");
    *length = static_cast<uint32_t>(call->packed != nullptr
                                        ? call->packed->arguments[index].tensors.size()
                                        : call->values[index].tensors().size());
  });
}

int list_view(ls_call* call, uint32_t index, uint32_t element, ls_tensor_view* view) {
  return guarded([&] {
    check_view(view);
    const Type& type = argument_type(call, index);
    if (type.base != BaseType::kTensor || !type.list) throw_not_a(call, "tensor list", index);
    if (call->packed != nullptr) {
      const auto& list = call->packed->arguments[index].tensors;
      fill(view, list[checked_index(call, "element", element, list)], call->packed->device);
    } else if (call->outputs != nullptr) {
      const TensorList list = call->values[index].tensors();
      fill(view, list[checked_index(call, "element", element, list)], false);
    } else {
      throw_not_here(call, "list_view");
    }
  });
}

}  // namespace

void set_scalar(ls_value& out, const Scalar& scalar) {
  if (scalar.is_floating()) {
    out.kind = LS_VALUE_FLOAT;
    out.as.real = scalar.to_double();
  } else {
    out.kind = scalar.kind() == DType::kBool ? LS_VALUE_BOOL : LS_VALUE_INT;
    out.as.integer = scalar.to_int();
  }
}

namespace {

void set_list(ls_value& out, BaseType base, const Value& value) {
  if (base == BaseType::kInt) {
    out.kind = LS_VALUE_INTS;
    out.as.integers = value.to_int_list().data();
    out.length = value.to_int_list().size();
  } else if (base == BaseType::kFloat) {
    out.kind = LS_VALUE_FLOATS;
    out.as.reals = value.to_double_list().data();
    out.length = value.to_double_list().size();
  } else {
    out.kind = LS_VALUE_BOOLS;
    out.as.integer = value.to_bool_list().bits;
    out.length = value.to_bool_list().count;
  }
}

void set_tensor(ls_call* call, ls_value& out, const Value& value) {
  if (call->results == nullptr) {
    out.kind = LS_VALUE_OTHER;
  } else if (value.is_tensor()) {
    out.kind = LS_VALUE_TENSOR;
    out.as.tensor = handle_of(value.tensor());
  } else {
    std::vector<ls_tensor*>& handles = call->handles.emplace_back();
    for (const Tensor& tensor : value.tensors()) handles.push_back(handle_of(tensor));
    out.kind = LS_VALUE_TENSORS;
    out.as.tensors = handles.data();
    out.length = handles.size();
  }
}

void set_value(ls_call* call, ls_value& out, const Type& type, const Value& value) {
  out = {};
  if (value.is_none() && type.base != BaseType::kTensor) return;
  if (type.base == BaseType::kTensor) {
    if (!value.is_none()) set_tensor(call, out, value);
  } else if (type.list) {
    set_list(out, type.base, value);
  } else if (type.base == BaseType::kScalar) {
    set_scalar(out, value.to_scalar());
  } else if (type.base == BaseType::kInt) {
    set_scalar(out, value.to_int());
  } else if (type.base == BaseType::kFloat) {
    set_scalar(out, value.to_double());
  } else if (type.base == BaseType::kBool) {
    set_scalar(out, value.to_bool());
  } else if (type.base == BaseType::kStr) {
    out.kind = LS_VALUE_TEXT;
    out.as.text = value.to_string_view().data();
    out.length = value.to_string_view().size();
  } else if (type.base == BaseType::kDType) {
    out.kind = LS_VALUE_DTYPE;
    out.as.integer = static_cast<int64_t>(value.to_dtype());
  } else {
    out.kind = LS_VALUE_OTHER;
    out.as.room[0] = reinterpret_cast<uintptr_t>(&value);
  }
}

int argument(ls_call* call, uint32_t index, ls_value* value) {
  return guarded([&] {
    static const Value kNone;
    const Type& type = argument_type(call, index);
    const bool given = call->packed != nullptr || index < call->values.size();
    const Value& from = !given                    ? kNone
                        : call->packed != nullptr ? call->packed->arguments[index].value
                                                  : call->values[index];
    set_value(call, *value, type, from);
  });
}

// --- rules and kernels ---------------------------------------------------------------------------

int add_result(ls_call* call, const ls_output_spec* spec) {
  return guarded([&] {
    if (call->outputs == nullptr) throw_not_here(call, "add_result");
    call->outputs->specs.push_back(checked_spec(call->op, spec));
  });
}

int set_compute_dtype(ls_call* call, int32_t dtype) {
  return guarded([&] {
    if (call->outputs == nullptr) throw_not_here(call, "set_compute_dtype");
    call->outputs->compute = checked_enum("dtype", dtype, DType::kF64);
  });
}

int result_view(ls_call* call, uint32_t index, ls_tensor_view* view) {
  return guarded([&] {
    check_view(view);
    if (call->packed == nullptr) throw_not_here(call, "result_view");
    LS_CHECK(call->made == nullptr, DispatchError,
             "[{}] result_view: the operator has no shape rule, so its kernels make the results: "
             "expected new_result.",
             call->op.name());
    const auto& results = call->packed->results;
    fill(view, *results[checked_index(call, "result", index, results)], call->packed->device);
  });
}

// --- derivatives, bodies and batching rules ------------------------------------------------------

VjpContext& checked_vjp(const ls_call* call, const char* function) {
  if (call->vjp == nullptr) throw_not_here(call, function);
  return *call->vjp;
}

size_t checked_input(const ls_call* call, const VjpContext& context, uint32_t index) {
  LS_CHECK(index < context.input_count(), DispatchError,
           "[{}] there is no tensor {}: expected less than {}.", call->op.name(), index,
           context.input_count());
  return index;
}

int gradient(ls_call* call, uint32_t index, ls_tensor** gradient) {
  return guarded([&] {
    checked_vjp(call, "gradient");
    *gradient = handle_of(call->grads[checked_index(call, "result", index, call->grads)]);
  });
}

int saved(ls_call* call, uint32_t index, ls_tensor** saved) {
  return guarded([&] {
    const VjpContext& context = checked_vjp(call, "saved");
    LS_CHECK(index < context.saved_count(), DispatchError,
             "[{}] there is no saved tensor {}: expected less than {}.", call->op.name(), index,
             context.saved_count());
    *saved = handle_of(context.saved(index));
  });
}

int input_view(ls_call* call, uint32_t index, ls_tensor_view* view) {
  return guarded([&] {
    check_view(view);
    const VjpContext& context = checked_vjp(call, "input_view");
    const InputMeta& meta = context.input(checked_input(call, context, index));
    const Dims& strides = call->strides.emplace_back(meta.strides());
    fill(view, nullptr, meta.sizes.data(), strides.data(),
         meta.defined ? static_cast<int>(meta.sizes.size()) : -1, meta.dtype, meta.device);
  });
}

int needs_gradient(ls_call* call, uint32_t index) {
  return call->vjp != nullptr && call->vjp->needs(index) ? 1 : 0;
}

int set_gradient(ls_call* call, uint32_t index, ls_tensor* gradient) {
  return guarded([&] {
    const VjpContext& context = checked_vjp(call, "set_gradient");
    checked_input(call, context, index);
    while (call->gradients->size() <= index) call->gradients->emplace_back();
    (*call->gradients)[index] = tensor_of(gradient);
  });
}

int unbroadcast(ls_call* call, ls_tensor* gradient, uint32_t index, ls_tensor** result) {
  return guarded([&] {
    const VjpContext& context = checked_vjp(call, "unbroadcast");
    LS_CHECK(gradient != nullptr, AutogradError, "[{}] unbroadcast: the gradient is NULL.",
             call->op.name());
    const Tensor summed =
        context.unbroadcast(tensor_of(gradient), checked_input(call, context, index));
    *result = reinterpret_cast<ls_tensor*>(Ref<TensorImpl>::share(summed.impl()).detach());
  });
}

int set_result(ls_call* call, uint32_t index, ls_tensor* result) {
  return guarded([&] {
    if (call->results == nullptr) throw_not_here(call, "set_result");
    checked_index(call, "result", index, call->op.schema().returns);
    while (call->results->size() <= index) call->results->emplace_back();
    if (result != nullptr) (*call->results)[index] = Value(tensor_of(result));
  });
}

int is_batched(ls_call* call, uint32_t index) {
  return call->batched != nullptr && index < 64 && ((*call->batched >> index) & 1) != 0 ? 1 : 0;
}

// --- tensors
// ---------------------------------------------------------------------------------------

}  // namespace

Value value_of(const ls_value& value) {
  const size_t length = static_cast<size_t>(value.length);
  switch (value.kind) {
    case LS_VALUE_NONE:
      return {};
    case LS_VALUE_INT:
      return Value(value.as.integer);
    case LS_VALUE_FLOAT:
      return Value(value.as.real);
    case LS_VALUE_BOOL:
      return Value(value.as.integer != 0);
    case LS_VALUE_INTS:
      return Value(IntList(std::span(value.as.integers, length)));
    case LS_VALUE_FLOATS:
      return Value(DoubleList(std::span(value.as.reals, length)));
    case LS_VALUE_BOOLS: {
      BoolList flags;
      flags.bits = static_cast<uint32_t>(value.as.integer);
      flags.count = static_cast<uint32_t>(length);
      return Value(flags);
    }
    case LS_VALUE_TEXT:
      return Value(std::string_view(value.as.text, length));
    case LS_VALUE_DTYPE:
      return Value(checked_enum("dtype", static_cast<int32_t>(value.as.integer), DType::kF64));
    case LS_VALUE_TENSOR:
      return value.as.tensor != nullptr ? Value(tensor_of(value.as.tensor)) : Value();
    case LS_VALUE_TENSORS: {
      std::vector<Tensor> tensors;
      for (size_t i = 0; i < length; ++i) tensors.push_back(tensor_of(value.as.tensors[i]));
      return Value(std::move(tensors));
    }
    case LS_VALUE_OTHER:
      LS_CHECK(value.as.room[0] != 0, DispatchError,
               "[plugin] a value that cannot be passed on: it names no argument of this call.");
      return *reinterpret_cast<const Value*>(static_cast<uintptr_t>(value.as.room[0]));
    default:
      throw DispatchError(fmt::format("[plugin] unknown kind of value: {}.", value.kind));
  }
}

namespace {

std::vector<Tensor> result_tensors(const Operator& op, std::vector<Value> values) {
  std::vector<Tensor> tensors;
  for (Value& value : values) {
    LS_CHECK(value.is_none() || value.is_tensor() || value.is_tensor_list(), DispatchError,
             "[{}] call: expected tensors as results: {}. Use call_for_value for a number.",
             op.name(), op.schema().to_string());
    if (value.is_tensor_list()) {
      for (Tensor& tensor : value.take_tensors()) tensors.push_back(std::move(tensor));
    } else {
      tensors.push_back(value.take_tensor());
    }
  }
  return tensors;
}

int call(const char* name, const ls_value* arguments, uint32_t argument_count, ls_tensor** results,
         uint32_t capacity, uint32_t* count) {
  return guarded([&] {
    LS_CHECK(name != nullptr, DispatchError, "[plugin] call: the operator's name is NULL.");
    const Operator& op = dispatcher().find(name);
    SmallVector<Value, 8> values;
    for (uint32_t i = 0; i < argument_count; ++i) values.push_back(value_of(arguments[i]));
    const std::vector<Tensor> tensors = result_tensors(op, call_values(op, values));
    LS_CHECK(tensors.size() <= capacity, DispatchError,
             "[{}] call: expected room for {} results, got {}.", op.name(), tensors.size(),
             capacity);
    for (size_t i = 0; i < tensors.size(); ++i) {
      results[i] = reinterpret_cast<ls_tensor*>(Ref<TensorImpl>::share(tensors[i].impl()).detach());
    }
    if (count != nullptr) *count = static_cast<uint32_t>(tensors.size());
  });
}

int tensor_view(ls_tensor* tensor, ls_tensor_view* view) {
  return guarded([&] { fill_view(view, tensor_of(tensor)); });
}

void retain(ls_tensor* tensor) {
  Ref<TensorImpl>::share(reinterpret_cast<TensorImpl*>(tensor)).detach();
}
void release(ls_tensor* tensor) { Ref<TensorImpl>::adopt(reinterpret_cast<TensorImpl*>(tensor)); }

int run_in_parallel(int64_t count, int64_t grain, int (*body)(void*, int64_t, int64_t),
                    void* data) {
  return guarded([&] {
    lockstep::parallel_for(0, count, grain, [&](int64_t first, int64_t last) {
      // Stored errors belong to a thread; an exception carries this one to the caller's thread.
      PluginError::clear();
      checked_call(
          "parallel_for", [] { return std::string("the body"); },
          [&] { return body(data, first, last); });
    });
  });
}

int fail(int32_t kind, const char* message) {
  PluginError::set(kind, message);
  return 1;
}

ls_host make_host() {
  ls_host host = {
      .size = sizeof(ls_host),
      .abi_version = LS_PLUGIN_ABI_VERSION,
      .reserved = 0,
      .fail = &fail,
      .error = &PluginError::message,
      .argument_view = &argument_view,
      .list_length = &list_length,
      .list_view = &list_view,
      .argument = &argument,
      .add_result = &add_result,
      .set_compute_dtype = &set_compute_dtype,
      .result_view = &result_view,
      .gradient = &gradient,
      .saved = &saved,
      .input_view = &input_view,
      .needs_gradient = &needs_gradient,
      .set_gradient = &set_gradient,
      .call = &call,
      .tensor_view = &tensor_view,
      .retain = &retain,
      .release = &release,
      .set_result = &set_result,
      .is_batched = &is_batched,
      .unbroadcast = &unbroadcast,
      .parallel_for = &run_in_parallel,
  };
  add_definition_functions(host);
  add_result_functions(host);
  add_device_functions(host);
  return host;
}

}  // namespace

const ls_host& plugin_host() {
  static const ls_host kHost = make_host();
  return kHost;
}

}  // namespace lockstep
