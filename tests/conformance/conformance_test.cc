#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/base/error.h"
#include "core/dispatch/op.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_round.h"
#include "tests/conformance/run.h"
#include "tests/core/base/temporary_directory.h"
#include "train/weights/safetensors.h"

namespace lockstep::conformance {
namespace {

using ::testing::HasSubstr;
using train::TemporaryDirectory;

/// A folder with one case file for `op`, whose tensors are x = [1, 2, 3], y = [2, 4, 6], ones = [1,
/// 1, 1] and zero = [0, 0, 0].
class Cases {
 public:
  Cases(const std::string& op, const std::string& cases) {
    train::put_file(folder_ / (op + ".json"),
                    R"({"op": "aten::)" + op + R"(", "cases": [)" + cases + "]}");
    static constexpr float kX[] = {1, 2, 3};
    static constexpr float kY[] = {2, 4, 6};
    static constexpr float kOnes[] = {1, 1, 1};
    static constexpr float kZero[] = {0, 0, 0};
    std::vector<train::TensorRecord> records;
    for (const auto& [name, values] :
         {std::pair("x", kX), {"y", kY}, {"ones", kOnes}, {"zero", kZero}}) {
      records.push_back({name, DType::kF32, {3}, std::as_bytes(std::span(values, 3))});
    }
    train::write_safetensors(folder_ / (op + ".safetensors"), records);
  }

  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  TemporaryDirectory folder_;
};

/// A case of add(x, x) with an expected value and, if given, the gradient of its first argument.
std::string add_case(const std::string& want, const std::string& gradient = "") {
  std::string text = R"({"args": [{"tensor": "x"}, {"tensor": "x"}], "kwargs": {}, "outputs": [)" +
                     want + R"(], "output_dtypes": ["float32"])";
  if (!gradient.empty()) {
    text += R"(, "cotangents": {"0": {"tensor": "ones"}}, "grads": [{"path": [0], "value": )" +
            gradient + "}]";
  }
  return text + "}";
}

const std::string kY = R"({"tensor": "y"})";
const std::string kOnes = R"({"tensor": "ones"})";

TEST(Conformance, CountsAgreementOfValuesAndGradients) {
  const Cases cases("add.Tensor", add_case(kY) + "," + add_case(kY, kOnes));
  const Report report = run_directory(cases.path());
  EXPECT_EQ(report.passed, 2u);
  EXPECT_EQ(report.failed, 0u);
}

TEST(Conformance, SaysWhatDiffered) {
  const Cases cases("add.Tensor", add_case(kY) + "," + add_case(kOnes) + "," + add_case(kY, kY));
  const Report report = run_directory(cases.path());
  EXPECT_EQ(report.passed, 1u);
  EXPECT_EQ(report.failed, 2u);
  ASSERT_EQ(report.failures.size(), 1u);
  EXPECT_EQ(report.failures[0].op, "add.Tensor");
  EXPECT_EQ(report.failures[0].first_case, 1u);
  EXPECT_THAT(report.failures[0].message, HasSubstr("output 0: 3 of 3 elements differ"));
}

TEST(Conformance, ReadsStridedViewsOfStorage) {
  const Cases cases("add.Tensor", R"({"args": [
      {"tensor": "x", "size": [2, 2], "stride": [0, 1], "offset": 1},
      {"tensor": "x", "size": [2, 2], "stride": [0, 1], "offset": 1}], "kwargs": {},
      "outputs": [{"tensor": "y", "size": [2, 2], "stride": [0, 1], "offset": 1}],
      "output_dtypes": ["float32"]})");
  EXPECT_EQ(run_directory(cases.path()).passed, 1u);
}

TEST(Conformance, GivesKeywordsAndInfinities) {
  const Cases cases("add.Tensor", R"({"args": [{"tensor": "x"}, {"tensor": "x"}],
      "kwargs": {"alpha": {"float": "inf"}}, "outputs": [{"tensor": "y"}],
      "output_dtypes": ["float32"]})");
  const Report report = run_directory(cases.path());
  ASSERT_EQ(report.failures.size(), 1u);
  EXPECT_THAT(report.failures[0].message, HasSubstr("expected 2, got inf"));
}

TEST(Conformance, CountsAThrowAsAFailure) {
  const Cases cases("add.Tensor", R"({"args": [{"tensor": "x"}], "kwargs": {}, "outputs": [],
      "output_dtypes": []})");
  const Report report = run_directory(cases.path());
  ASSERT_EQ(report.failures.size(), 1u);
  EXPECT_THAT(report.failures[0].message, HasSubstr("argument other is missing"));
}

TEST(Conformance, SkipsOperatorsThatAreNotRegistered) {
  const Cases cases("not_an_operator", add_case(kY) + "," + add_case(kY));
  EXPECT_EQ(run_directory(cases.path()).skipped, 2u);
}

TEST(Conformance, RefusesFoldersWithoutCasesAndMalformedOnes) {
  const TemporaryDirectory empty;
  EXPECT_THROW(run_directory(empty.path()), DataError);
  EXPECT_THROW(run_directory(empty / "missing"), DataError);
  const Cases malformed("add.Tensor", "{");
  EXPECT_THROW(run_directory(malformed.path()), DataError);
  EXPECT_THROW(run_directory(malformed.path(), {.only = "mul.Tensor"}), DataError);
}

/// A case of a float32 operator, with the gradient of its first argument for a cotangent `ones`.
std::string case_with_gradient(const std::string& arguments, const std::string& output,
                               const std::string& gradient, const std::string& ones = kOnes) {
  return R"({"args": [)" + arguments + R"(], "kwargs": {}, "outputs": [)" + output +
         R"(], "output_dtypes": ["float32"], "cotangents": {"0": )" + ones +
         R"(}, "grads": [{"path": [0], "value": )" + gradient + "}]}";
}

const std::string kX = R"({"tensor": "x"})";
const std::string kZero = R"({"tensor": "zero"})";
const RunOptions kTwice{.double_backward = true};
const RunOptions kOnMeta{.device = kMeta};

/// Returns x with the gradient 2 x, but a second derivative of zero: wrong on purpose.
LS_OP(stiff, Tensor(const Tensor&), "conformance_test_stiff(Tensor self) -> Tensor")
    .doc("For tests.")
    .composite([](const Tensor& self) {
      const Tensor fixed = self.detach();
      return self + (self - fixed) * (fixed * 2 - 1);
    });

/// A function whose gradient has a step every 1e-6.
LS_OP(stairs, Tensor(const Tensor&), "conformance_test_stairs(Tensor self) -> Tensor")
    .doc("For tests.")
    .composite([](const Tensor& self) { return self * floor(self.detach() * 1e6 + 0.5); });

LS_OP(unlike, Tensor(const Tensor&), "conformance_test_unlike(Tensor self) -> Tensor")
    .doc("For tests: the shape on meta is another one.")
    .composite([](const Tensor& self) {
      return self.device() == kMeta ? self.unsqueeze(0) : self.clone();
    });

TEST(DoubleBackward, PassesForCorrectDerivatives) {
  const Cases cases("mul.Tensor", case_with_gradient(kX + "," + kOnes, kX, kOnes));
  const Report report = run_directory(cases.path(), kTwice);
  EXPECT_EQ(report.passed, 1u);
  EXPECT_TRUE(report.reasons.empty());
}

TEST(DoubleBackward, FindsADerivativeThatForgetsWhatItDependsOn) {
  const Cases cases("conformance_test_stiff", case_with_gradient(kX, kX, kY));
  EXPECT_EQ(run_directory(cases.path()).passed, 1u);
  const Report report = run_directory(cases.path(), kTwice);
  ASSERT_EQ(report.failures.size(), 1u);
  EXPECT_THAT(report.failures[0].message, HasSubstr("second derivatives: [gradcheck]"));
}

TEST(DoubleBackward, ChecksBesideAKinkAndSaysSo) {
  const Cases cases("abs", case_with_gradient(kZero, kZero, kZero));
  const Report report = run_directory(cases.path(), kTwice);
  EXPECT_EQ(report.passed, 1u);
  ASSERT_EQ(report.reasons.size(), 1u);
  EXPECT_THAT(report.reasons.begin()->first, HasSubstr("at a kink"));
  EXPECT_EQ(report.reasons.begin()->second.at("abs"), 1u);
}

TEST(DoubleBackward, TakesStairsForKinksWhateverTheirWidth) {
  const Cases cases("conformance_test_stairs", case_with_gradient(kZero, kZero, kZero));
  const Report report = run_directory(cases.path(), kTwice);
  EXPECT_EQ(report.failed, 0u);
  EXPECT_EQ(report.skipped, 1u);
}

TEST(DoubleBackward, ChecksLargeCasesAlongLinesAndSaysSo) {
  const std::string large = R"(, "size": [150], "stride": [0], "offset": 0})";
  const std::string ones = R"({"tensor": "ones")" + large;
  const std::string y = R"({"tensor": "y")" + large;
  const Cases right("add.Tensor", case_with_gradient(ones + "," + ones, y, ones, ones));
  const Report report = run_directory(right.path(), kTwice);
  EXPECT_EQ(report.passed, 1u);
  ASSERT_EQ(report.reasons.size(), 1u);
  EXPECT_THAT(report.reasons.begin()->first, HasSubstr("more than 200 elements"));
  const Cases wrong("conformance_test_stiff", case_with_gradient(ones, ones, y, ones));
  EXPECT_EQ(run_directory(wrong.path(), kTwice).failed, 1u);
}

TEST(OnMeta, ComparesShapesAndNoValues) {
  const Cases cases("add.Tensor", add_case(kOnes) + "," + add_case(kY, kX));
  EXPECT_EQ(run_directory(cases.path()).failed, 2u);
  EXPECT_EQ(run_directory(cases.path(), kOnMeta).passed, 2u);
}

TEST(OnMeta, FindsAnotherShape) {
  const Cases cases("conformance_test_unlike", case_with_gradient(kX, kX, kOnes));
  EXPECT_EQ(run_directory(cases.path()).passed, 1u);
  const Report report = run_directory(cases.path(), kOnMeta);
  ASSERT_EQ(report.failures.size(), 1u);
  EXPECT_THAT(report.failures[0].message, HasSubstr("shape: expected [3], got [1, 3]"));
}

TEST(OnMeta, SkipsWhatDependsOnValuesAndSaysSo) {
  const Cases cases("nonzero", R"({"args": [{"tensor": "zero"}], "kwargs": {},
      "outputs": [{"tensor": "x", "size": [0, 1], "stride": [1, 1]}],
      "output_dtypes": ["int64"]})");
  const Report report = run_directory(cases.path(), kOnMeta);
  EXPECT_EQ(report.skipped, 1u);
  ASSERT_EQ(report.reasons.size(), 1u);
  EXPECT_THAT(report.reasons.begin()->first, HasSubstr("depends on values"));
}

TEST(Devices, CallsThatRanOnTheCpuInsteadAreCounted) {
  const Cases cases("nonzero", R"({"args": [{"tensor": "ones"}], "kwargs": {},
      "outputs": [{"tensor": "x", "size": [3, 1], "stride": [1, 1]}],
      "output_dtypes": ["int64"]})");
  const Report report = run_directory(cases.path(), {.device = parse_device("host:0")});
  EXPECT_EQ(report.fallbacks, (std::map<std::string, int64_t>{{"nonzero", 1}}));
  EXPECT_EQ(run_directory(cases.path()).fallbacks, (std::map<std::string, int64_t>{}));
}

TEST(Devices, AreRefusedWhenNothingRunsThere) {
  const Cases cases("add.Tensor", add_case(kY));
  EXPECT_THROW(run_directory(cases.path(), {.device = parse_device("private1:0")}), DeviceError);
  EXPECT_THROW(run_directory(cases.path(), {.device = parse_device("host:7")}), DeviceError);
  EXPECT_THROW(run_directory(cases.path(), {.device = kMeta, .double_backward = true}),
               DeviceError);
}

/// Runs the recorded cases stored next to the repository.
void run_recorded_cases(const RunOptions& options) {
  const std::filesystem::path directory =
      std::filesystem::path(LOCKSTEP_SOURCE_DIR).parent_path() / "shared" / "conformance";
  if (!std::filesystem::exists(directory)) GTEST_SKIP() << "no recorded cases at " << directory;
  const Report report = run_directory(directory, options);
  for (const Failure& failure : report.failures) {
    ADD_FAILURE() << failure.op << " case " << failure.first_case << ": " << failure.message;
  }
  EXPECT_GT(report.passed, 0u);
}

TEST(RecordedCases, AgreeInValuesAndGradientsOfBothOrders) { run_recorded_cases(kTwice); }
TEST(RecordedCases, AgreeOnStreamsOfTheHost) {
  run_recorded_cases({.device = parse_device("host:0")});
}
TEST(RecordedCases, AgreeInGeometryOnMeta) { run_recorded_cases(kOnMeta); }

}  // namespace
}  // namespace lockstep::conformance
