#include "configs/bit_flip.h"

#include <gtest/gtest.h>

#include "configs/run.pb.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep::config {
namespace {

using train::message_of;
using train::says;

TEST(BitFlip, IsReadFromOneLine) {
  const BitFlip flip = parse_flip("step=13,operator=mm.out,call=3,element=17,bit=0");
  EXPECT_EQ(flip.step, 13);
  EXPECT_EQ(flip.micro_batch, 0);
  EXPECT_EQ(flip.operator_name, "mm.out");
  EXPECT_EQ(flip.call, 3);
  EXPECT_EQ(flip.result, 0);
  EXPECT_EQ(flip.element, 17);
  EXPECT_EQ(flip.bit, 0);
  EXPECT_FALSE(
      parse_flip("step=1,operator=mm,call=1,element=0,bit=0,micro_batch=update").micro_batch);
}

TEST(BitFlip, ReadsWhatItWrites) {
  BitFlip flip{.step = 4, .micro_batch = 7, .operator_name = "add_.Tensor", .call = 2, .result = 1};
  EXPECT_EQ(parse_flip(to_text(flip)), flip);
  flip.micro_batch.reset();
  EXPECT_EQ(parse_flip(to_text(flip)), flip);
}

TEST(BitFlip, NamesThePartThatIsWrong) {
  const auto problem = [](const char* text) {
    return message_of<ConfigError>([&] { (void)parse_flip(text); });
  };
  EXPECT_TRUE(says(problem("step=0,operator=mm,call=1,element=0,bit=0"), "step is \"0\""));
  EXPECT_TRUE(says(problem("step=1,operator=mm,call=x,element=0,bit=0"), "call is \"x\""));
  EXPECT_TRUE(says(problem("step=1,operator=mm,call=1,element=0,bit=64"), "bit is \"64\""));
  EXPECT_TRUE(says(problem("step=1,operator=mm,call=1,element=0"), "has no bit"));
  EXPECT_TRUE(says(problem("step=1,step=2"), "gives step twice"));
  EXPECT_TRUE(says(problem("step=1,rank=2"), "has no part \"rank\""));
  EXPECT_TRUE(says(problem("step"), "expected NAME=VALUE"));
}

TEST(BitFlip, IsCheckedWithTheConfigThatHasIt) {
  const auto load = [](const char* flip) {
    return load_text(std::string("model { gpt2 { context_length: 8 layers: 1 heads: 2 width: 8 } } "
                                 "data { random {} } train { steps: 1 batch_size: 4 } "
                                 "inject { flip: \"") +
                     flip + "\" }");
  };
  EXPECT_TRUE(flip_of(load("step=1,operator=mm,call=1,element=0,bit=0")));
  EXPECT_FALSE(flip_of(load("")));
  EXPECT_TRUE(says(message_of<SourceError>([&] {
                     (void)load("step=1,operator=mm,call=1,element=0,bit=0,micro_batch=1");
                   }),
                   "expected one of the 1 of a step"));
}

}  // namespace
}  // namespace lockstep::config
