#include "configs/list_value.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "configs/field.h"

namespace lockstep::config {
namespace {

// Uses protobuf's own messages, which have lists of strings and lists of numbers without ranges.
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptorProto;
using google::protobuf::util::MessageDifferencer;
using testing::ElementsAre;
using testing::IsEmpty;

const FieldDescriptor& numbers() {
  return *FileDescriptorProto::descriptor()->FindFieldByName("public_dependency");
}
const FieldDescriptor& texts() {
  return *FileDescriptorProto::descriptor()->FindFieldByName("dependency");
}

std::vector<std::string> values(std::string_view text) {
  return list_values(text).value_or(std::vector<std::string>{"refused"});
}

TEST(ListValues, AreWrittenWithOrWithoutBrackets) {
  EXPECT_THAT(values("1"), ElementsAre("1"));
  EXPECT_THAT(values("1,2"), ElementsAre("1", "2"));
  EXPECT_THAT(values(" [ 1 , -2e3 ] "), ElementsAre("1", "-2e3"));
  EXPECT_THAT(values("[]"), IsEmpty());
  EXPECT_THAT(values("[ ]"), IsEmpty());
  EXPECT_THAT(values("1,,"), ElementsAre("1", "", ""));
}

TEST(ListValues, QuotesKeepCommasAndBrackets) {
  EXPECT_THAT(values(R"(["a,b", '[c]'])"), ElementsAre(R"("a,b")", "'[c]'"));
  EXPECT_THAT(values(R"("a\",b", c)"), ElementsAre(R"("a\",b")", "c"));
}

TEST(ListValues, NeedBothBracketsAndBothQuotes) {
  for (const char* text :
       {"", " ", "[", "[1", "1]", "[[1]]", "[1],[2]", "\"a", "'a,b", "\"a\\\""}) {
    EXPECT_THAT(values(text), ElementsAre("refused")) << text;
  }
}

TEST(AssignList, ReplacesOrAppends) {
  FileDescriptorProto message;
  EXPECT_EQ(assign_list(message, numbers(), "n", "[4, 5]", ListChange::kReplace), "");
  EXPECT_EQ(assign_list(message, numbers(), "n", "6", ListChange::kAppend), "");
  EXPECT_EQ(value_text(message, numbers()), "[4, 5, 6]");
  EXPECT_EQ(assign_list(message, numbers(), "n", "7,8", ListChange::kReplace), "");
  EXPECT_EQ(value_text(message, numbers()), "[7, 8]");
  EXPECT_EQ(assign_list(message, numbers(), "n", "[]", ListChange::kAppend), "");
  EXPECT_EQ(value_text(message, numbers()), "[7, 8]");
  EXPECT_EQ(assign_list(message, numbers(), "n", "[]", ListChange::kReplace), "");
  EXPECT_EQ(value_text(message, numbers()), "[]");
}

TEST(AssignList, TextsNeedNoQuotes) {
  FileDescriptorProto message;
  EXPECT_EQ(assign_list(message, texts(), "t", "a b, \"c,d\",''", ListChange::kReplace), "");
  EXPECT_THAT(message.dependency(), ElementsAre("a b", "c,d", ""));
}

TEST(AssignList, NamesTheFirstWrongValueAndChangesNothing) {
  FileDescriptorProto message;
  ASSERT_EQ(assign_list(message, numbers(), "n", "4,5", ListChange::kReplace), "");
  const auto problem = [&](const char* text, ListChange change) {
    const std::string found = assign_list(message, numbers(), "n", text, change);
    EXPECT_EQ(value_text(message, numbers()), "[4, 5]");
    return found;
  };
  EXPECT_EQ(problem("1,x,y", ListChange::kReplace), "n[1] is x: expected an integer.");
  EXPECT_EQ(problem("1,x,y", ListChange::kAppend), "n[3] is x: expected an integer.");
  EXPECT_EQ(problem("1 2", ListChange::kReplace), "n[0] is 1 2: expected an integer.");
  EXPECT_EQ(problem("1,,2", ListChange::kReplace), "n[1] is empty: expected an integer.");
  EXPECT_EQ(problem("", ListChange::kReplace),
            "n is empty: expected [a, b, ...], each an integer.");
  EXPECT_EQ(problem("[1", ListChange::kReplace), "n is [1: expected [a, b, ...], each an integer.");
}

RC_GTEST_PROP(AssignList, ReadsBackWhatValueTextWrites, ()) {
  FileDescriptorProto message;
  const auto some_texts = *rc::gen::arbitrary<std::vector<std::string>>();
  const auto some_numbers = *rc::gen::arbitrary<std::vector<int32_t>>();
  for (const std::string& text : some_texts) message.add_dependency(text);
  for (const int32_t number : some_numbers) message.add_public_dependency(number);
  FileDescriptorProto read;
  for (const FieldDescriptor* field : {&texts(), &numbers()}) {
    const std::string written = value_text(message, *field);
    RC_ASSERT(assign_list(read, *field, "list", written, ListChange::kReplace).empty());
  }
  RC_ASSERT(MessageDifferencer::Equals(read, message));
}

RC_GTEST_PROP(AssignList, AnyTextIsTakenOrRefusedWithoutAChange, ()) {
  const auto text =
      *rc::gen::container<std::string>(rc::gen::elementOf(std::string("[],\"'\\ 1a-")));
  for (const FieldDescriptor* field : {&texts(), &numbers()}) {
    FileDescriptorProto message;
    RC_ASSERT(assign_list(message, *field, "list", "[4, 5]", ListChange::kReplace).empty());
    const std::string problem = assign_list(message, *field, "list", text, ListChange::kReplace);
    const std::string written = value_text(message, *field);
    if (!problem.empty()) {
      RC_ASSERT(problem.starts_with("list"));
      RC_ASSERT(written == (field == &texts() ? "[\"4\", \"5\"]" : "[4, 5]"));
      continue;
    }
    FileDescriptorProto read;
    RC_ASSERT(assign_list(read, *field, "list", written, ListChange::kReplace).empty());
    RC_ASSERT(MessageDifferencer::Equals(read, message));
  }
}

}  // namespace
}  // namespace lockstep::config
