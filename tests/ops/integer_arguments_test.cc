// Every operator, its in-place and its out= forms, with every integer and number argument and every
// element of its integer tensors at the ends of what the type holds: the call is refused, or its
// results have the geometry that the shape rule gives on the meta device.
// Under AddressSanitizer and UndefinedBehaviorSanitizer it also stays inside its memory and its
// integers.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <new>

#include "core/base/check.h"
#include "tests/conformance/elements.h"
#include "tests/ops/operator_call.h"
#include "tests/ops/operator_forms.h"

namespace lockstep {
namespace {

constexpr size_t kMostBytes = size_t{1} << 26;

/// Memory of the cpu for these calls. Each block is an allocation of its own, so that
/// AddressSanitizer knows where it ends, and a large one is refused before a kernel fills it.
class SmallMemory : public Allocator {
 public:
  Block allocate(size_t bytes, const Stream&) override {
    LS_CHECK(bytes <= kMostBytes, OutOfMemoryError,
             "[test] expected at most {} bytes, got a request for {}.", kMostBytes, bytes);
    if (bytes == 0) return {nullptr, 0, nullptr, this};
    return {::operator new(bytes, std::align_val_t(512)), bytes, nullptr, this};
  }
  void free(const Block& block) noexcept override {
    ::operator delete(block.data, std::align_val_t(512));
  }
  void record_stream(const Block&, const Stream&) override {}
  MemoryStats stats() const override { return {}; }
  void reset_peak() override {}
};

/// Never destroyed: a tensor may outlive the tests.
SmallMemory& small_memory() {
  static SmallMemory& memory = *new SmallMemory;
  return memory;
}

const std::vector<int64_t>& extreme_integers() {
  constexpr int64_t k31 = int64_t{1} << 31;
  constexpr int64_t k62 = int64_t{1} << 62;
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  static const std::vector<int64_t> values{
      0, 1, -1, k31, -k31, k62, -k62, kMost, -kMost, std::numeric_limits<int64_t>::min()};
  return values;
}

/// Numbers for arguments that take floats, too.
std::vector<Value> extreme_numbers() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<Value> values;
  for (const double number : {0.0, -1.0, 0x1p31, -0x1p62, 0x1p63, -0x1p63, 1e300, -1e300, kInfinity,
                              -kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
    values.emplace_back(number);
  }
  return values;
}

/// What to put in place of `value`.
std::vector<Value> extremes_of(const Argument& argument, const Value& value) {
  std::vector<Value> values;
  const BaseType base = argument.type.base;
  if (base == BaseType::kInt && argument.type.list) {
    const Dims list = value.is_none() ? Dims{1} : to_dims(value.to_int_list());
    for (const int64_t extreme : extreme_integers()) {
      for (size_t i = 0; i < list.size(); ++i) {
        Dims changed = list;
        changed[i] = extreme;
        values.push_back(owned_value(changed));
      }
      if (list.size() > 1) values.push_back(owned_value(Dims(list.size(), extreme)));
    }
  } else if ((base == BaseType::kInt || base == BaseType::kScalar) && !argument.type.list) {
    for (const int64_t extreme : extreme_integers()) values.emplace_back(extreme);
  }
  const bool number = base == BaseType::kFloat || base == BaseType::kScalar;
  if (number && !argument.type.list) {
    for (const Value& extreme : extreme_numbers()) values.push_back(extreme);
  }
  return values;
}

/// The same for pairs of arguments: fewer integers, each in all places of a list.
std::vector<Value> largest_of(const Argument& argument, const Value& value) {
  std::vector<Value> values;
  if (argument.type.base != BaseType::kInt) return values;
  const size_t length = value.is_none() || !argument.type.list ? 1 : value.to_int_list().size();
  for (const int64_t extreme : {int64_t{1}, int64_t{1} << 62, std::numeric_limits<int64_t>::max(),
                                std::numeric_limits<int64_t>::min()}) {
    values.push_back(argument.type.list ? owned_value(Dims(length, extreme)) : Value(extreme));
  }
  return values;
}

std::string geometry(const Results& results) {
  std::string text;
  for (const Tensor& tensor : results.tensors) {
    text += tensor.defined() ? fmt::format("{}{} strides {}, ", to_string(tensor.dtype()),
                                           tensor.shape(), to_string(tensor.strides()))
                             : "nothing, ";
  }
  return text;
}

/// The geometry of the results, or nothing if the call was refused.
std::optional<std::string> outcome(const Operator& op, Arguments& arguments) {
  try {
    return geometry(call_operator(op, arguments));
  } catch (const InternalError& error) {
    ADD_FAILURE() << error.what();
  } catch (const Error&) {
  } catch (const std::exception& error) {
    ADD_FAILURE() << "threw what is not an error of the library: " << error.what();
  }
  return std::nullopt;
}

Arguments copied(const Arguments& arguments) {
  return map_tensors(arguments,
                     [](const Tensor& t) { return t.defined() ? cast_copy(t, t.dtype()) : t; });
}

/// The in-place and out= forms of the operator, which writes into empty destinations of the dtypes
/// of its results.
void try_writing_forms(const Operator& op, const Arguments& arguments) {
  if (writing_forms(op).empty()) return;
  std::vector<DType> dtypes;
  try {
    Arguments copies = copied(arguments);
    for (const Tensor& result : call_operator(op, copies).tensors) {
      dtypes.push_back(result.defined() ? result.dtype() : DType::kF32);
    }
  } catch (const Error&) {
    // The forms must refuse it, too; try_call reports other exceptions.
  }
  dtypes.resize(std::max(dtypes.size(), op.schema().returns.size()), DType::kF32);
  for (const WritingForm& form : writing_forms(op)) {
    std::optional<Arguments> written = form.arguments(op, arguments);
    if (!written) continue;
    size_t next = 0;
    for (const size_t output : form.outputs()) {
      const bool list = form.op->schema().arguments[output].type.list;
      Tensor destination = empty_tensor({0}, dtypes[std::min(next++, dtypes.size() - 1)]);
      (*written)[output] =
          list ? Value(std::vector<Tensor>{destination}) : Value(std::move(destination));
    }
    SCOPED_TRACE(form.op->name());
    Arguments real = copied(*written);
    (void)outcome(*form.op, real);
  }
}

void try_call(const Operator& op, const Arguments& arguments) {
  try_writing_forms(op, arguments);
  Arguments real = copied(arguments);
  const std::optional<std::string> got = outcome(op, real);
  if (!got || (op.kind() != OpKind::kStructured && op.kind() != OpKind::kView)) return;
  Arguments meta = map_tensors(arguments, on_meta);
  for (size_t i = 0; i < meta.size(); ++i) {
    if (op.schema().arguments[i].type.base == BaseType::kDevice) meta[i] = Value(kMeta);
  }
  EXPECT_EQ(got, outcome(op, meta));
}

class ExtremeArguments : public ::testing::Test {
 protected:
  void SetUp() override { before_ = set_allocator(DeviceType::kCPU, &small_memory()); }
  void TearDown() override { set_allocator(DeviceType::kCPU, before_); }

 private:
  Allocator* before_ = nullptr;
};

void try_extremes(const Operator& op) {
  for (const Sample& sample : op_samples().at(op.name()).calls) {
    const Arguments given = arguments_of(op, sample);
    for (size_t i = 0; i < given.size(); ++i) {
      for (const Value& extreme : extremes_of(op.schema().arguments[i], given[i])) {
        SCOPED_TRACE(fmt::format("{} with {} = {}", sample.what, op.schema().arguments[i].name,
                                 extreme.to_string()));
        Arguments arguments = given;
        arguments[i] = extreme;
        try_call(op, arguments);
      }
    }
  }
}

/// Integer tensors are indices, targets and counts as well as numbers.
bool has_integers(const Value& value) {
  return value.is_tensor() && value.tensor().defined() && value.tensor().numel() > 0 &&
         is_integral(value.tensor().dtype()) && value.tensor().dtype() != DType::kBool;
}

/// The tensor with its first or last element, or all of them, at `extreme`, cut to its dtype.
std::vector<Value> with_elements(const Tensor& tensor, int64_t extreme) {
  std::vector<Value> values;
  const std::vector<int64_t> elements = elements_as<int64_t>(tensor);
  const auto add = [&](const std::vector<int64_t>& changed) {
    Tensor copy = empty_strided_tensor(tensor.sizes(), tensor.strides(), tensor.dtype());
    set_elements(copy, changed);
    values.emplace_back(std::move(copy));
  };
  for (const size_t place : {size_t{0}, elements.size() - 1}) {
    std::vector<int64_t> changed = elements;
    changed[place] = extreme;
    add(changed);
  }
  add(std::vector<int64_t>(elements.size(), extreme));
  return values;
}

void try_extreme_elements(const Operator& op) {
  for (const Sample& sample : op_samples().at(op.name()).calls) {
    const Arguments given = arguments_of(op, sample);
    for (size_t i = 0; i < given.size(); ++i) {
      if (!has_integers(given[i])) continue;
      for (const int64_t extreme : extreme_integers()) {
        for (const Value& value : with_elements(given[i].tensor(), extreme)) {
          SCOPED_TRACE(fmt::format("{} with elements of {} at {}", sample.what,
                                   op.schema().arguments[i].name, extreme));
          Arguments arguments = given;
          arguments[i] = value;
          Arguments real = copied(arguments);
          (void)outcome(op, real);
          try_writing_forms(op, arguments);
        }
      }
    }
  }
}

void try_pairs_of_extremes(const Operator& op) {
  const Arguments given = arguments_of(op, op_samples().at(op.name()).calls.front());
  for (size_t i = 0; i < given.size(); ++i) {
    for (size_t j = i + 1; j < given.size(); ++j) {
      for (const Value& first : largest_of(op.schema().arguments[i], given[i])) {
        for (const Value& second : largest_of(op.schema().arguments[j], given[j])) {
          SCOPED_TRACE(fmt::format("{} = {}, {} = {}", op.schema().arguments[i].name,
                                   first.to_string(), op.schema().arguments[j].name,
                                   second.to_string()));
          Arguments arguments = given;
          arguments[i] = first;
          arguments[j] = second;
          try_call(op, arguments);
        }
      }
    }
  }
}

std::vector<const Operator*> operators_with_numbers() {
  std::vector<const Operator*> found;
  for (const Operator* op : functional_operators()) {
    if (!op_samples().contains(op->name())) continue;  // registration_test.cc reports this
    for (const Argument& argument : op->schema().arguments) {
      const BaseType base = argument.type.base;
      if (base != BaseType::kInt && base != BaseType::kScalar && base != BaseType::kFloat) continue;
      found.push_back(op);
      break;
    }
  }
  return found;
}

// One test for all operators: a process of its own for each would take a thousand times as long.
TEST_F(ExtremeArguments, AreRefusedOrGiveTheGeometryOfTheRule) {
  for (const Operator* op : operators_with_numbers()) {
    SCOPED_TRACE(op->name());
    try_extremes(*op);
  }
}

TEST_F(ExtremeArguments, AsElementsOfIntegerTensorsAreRefusedOrTaken) {
  for (const Operator* op : functional_operators()) {
    if (!op_samples().contains(op->name())) continue;  // registration_test.cc reports this
    SCOPED_TRACE(op->name());
    try_extreme_elements(*op);
  }
}

TEST_F(ExtremeArguments, InPairsAreRefusedOrGiveTheGeometryOfTheRule) {
  for (const Operator* op : operators_with_numbers()) {
    SCOPED_TRACE(op->name());
    try_pairs_of_extremes(*op);
  }
}

}  // namespace
}  // namespace lockstep
