#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "configs/options.pb.h"
#include "configs/run.pb.h"

namespace lockstep::config {
namespace {

namespace pb = google::protobuf;
using pb::FieldDescriptor;

void for_each_field(const pb::Descriptor& type,
                    const std::function<void(const FieldDescriptor&)>& f) {
  for (int i = 0; i < type.field_count(); ++i) {
    f(*type.field(i));
    if (const pb::Descriptor* inner = type.field(i)->message_type()) for_each_field(*inner, f);
  }
}

TEST(Schema, EveryScalarKnowsWhetherItWasSet) {
  for_each_field(*RunConfig::descriptor(), [](const FieldDescriptor& field) {
    EXPECT_TRUE(field.is_repeated() || field.has_presence()) << field.full_name();
  });
}

TEST(Schema, ListsOfScalarsHaveADefaultAndListsOfMessagesNone) {
  for_each_field(*RunConfig::descriptor(), [](const FieldDescriptor& field) {
    if (!field.is_repeated()) return;
    const bool has_default =
        field.options().GetExtension(required) || field.options().HasExtension(default_value);
    EXPECT_EQ(has_default, field.message_type() == nullptr) << field.full_name();
  });
}

TEST(Schema, EveryNumberHasARangeExceptTheSeed) {
  for_each_field(*RunConfig::descriptor(), [](const FieldDescriptor& field) {
    const bool is_number = field.cpp_type() <= FieldDescriptor::CPPTYPE_FLOAT;
    if (!is_number || field.full_name() == "lockstep.config.RunConfig.seed") return;
    const Range& interval = field.options().GetExtension(range);
    EXPECT_TRUE(interval.has_min() && interval.has_max()) << field.full_name();
  });
}

TEST(Schema, EnumsStartWithAValueThatMeansNotSaid) {
  for_each_field(*RunConfig::descriptor(), [](const FieldDescriptor& field) {
    if (field.enum_type() == nullptr) return;
    const std::string& first = field.enum_type()->FindValueByNumber(0)->name();
    EXPECT_TRUE(first.ends_with("UNSPECIFIED")) << field.full_name();
  });
}

TEST(Schema, NoNameIsReservedBecauseTheParserDropsThoseInSilence) {
  for_each_field(*RunConfig::descriptor(), [](const FieldDescriptor& field) {
    EXPECT_EQ(field.containing_type()->reserved_name_count(), 0) << field.full_name();
  });
}

}  // namespace
}  // namespace lockstep::config
