#include "data/token_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/token_data.h"
#include "tests/data/stub_tokenizer.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;

/// Tokens of two rows of 8 for training and for validation, of which documents begin with 0.
TokenData with_documents() {
  const std::vector<uint32_t> ids = {0, 1, 2, 0, 3, 0, 0, 4, 9};
  return TokenData({{"training", TokenArray::copy_of(ids)}}, {{"held", TokenArray::copy_of(ids)}},
                   {.vocabulary = 256,
                    .order = WindowOrder::kShuffled,
                    .sequences_per_step = 1,
                    .tokenizer = std::make_shared<StubTokenizer>(false)});
}

TEST(TokenSource, DocumentsBeginWithTheTokenBetweenThem) {
  const TokenData data = with_documents();
  EXPECT_THAT(data.documents(0, 0, 8), ElementsAre(3, 2, 1, 2));
  EXPECT_THAT(data.validation_documents(0, 8), ElementsAre(3, 2, 1, 2));
}

TEST(TokenSource, RowsPastTheLastWindowAreOneDocument) {
  EXPECT_THAT(documents_of_validation(with_documents(), 0, 3, 8), ElementsAre(3, 2, 1, 2, 8, 8));
}

}  // namespace
}  // namespace lockstep::train
