#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "tests/conformance/run.h"
#include "tests/train/temporary_directory.h"
#include "train/safetensors.h"

namespace lockstep::conformance {
namespace {

using ::testing::HasSubstr;
using train::TemporaryDirectory;

/// A folder with one file of cases for `op`, whose tensors are x = [1, 2, 3], y = [2, 4, 6] and
/// ones = [1, 1, 1].
class Cases {
 public:
  Cases(const std::string& op, const std::string& cases) {
    train::put_file(folder_ / (op + ".json"),
                    R"({"op": "aten::)" + op + R"(", "cases": [)" + cases + "]}");
    static constexpr float kX[] = {1, 2, 3};
    static constexpr float kY[] = {2, 4, 6};
    static constexpr float kOnes[] = {1, 1, 1};
    std::vector<train::TensorRecord> records;
    for (const auto& [name, values] : {std::pair("x", kX), {"y", kY}, {"ones", kOnes}}) {
      records.push_back({name, DType::kF32, {3}, std::as_bytes(std::span(values, 3))});
    }
    train::write_safetensors(folder_ / (op + ".safetensors"), records);
  }

  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  TemporaryDirectory folder_;
};

/// add(x, x) with an expected value, and with the gradient of its first argument where one is
/// given.
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
  EXPECT_THROW(run_directory(malformed.path(), "mul.Tensor"), DataError);
}

TEST(Conformance, RegisteredOperatorsAgreeWithTheRecordedCases) {
  const std::filesystem::path directory =
      std::filesystem::path(LOCKSTEP_SOURCE_DIR).parent_path() / "shared" / "conformance";
  if (!std::filesystem::exists(directory)) GTEST_SKIP() << "no recorded cases at " << directory;
  const Report report = run_directory(directory);
  for (const Failure& failure : report.failures) {
    ADD_FAILURE() << failure.op << " case " << failure.first_case << ": " << failure.message;
  }
  EXPECT_GT(report.passed, 0u);
}

}  // namespace
}  // namespace lockstep::conformance
