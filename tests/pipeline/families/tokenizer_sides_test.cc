// Tokenizers that pad or truncate on the left, where the reference cuts a chat's tokens itself.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "base/file.h"
#include "base/json.h"
#include "edit_json.h"
#include "message_of.h"
#include "pipeline/engine/engine.h"
#include "small_models.h"
#include "temporary_folder.h"

#include <nlohmann/json.hpp>

namespace braid::tokenizer_sides_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

class TokenizerSides : public testing::Test {
 protected:
  fs::path copy_with(const fs::path& model, const char* key, const std::string& side) const {
    const auto copy = folder_ / side;
    fs::copy(model, copy, fs::copy_options::recursive);
    edit_json(copy / "tokenizer/tokenizer_config.json", [&](Json& json) { json[key] = side; });
    return copy;
  }

  TemporaryFolder folder_;
};

TEST_F(TokenizerSides, OfKrea2PadOnTheRight) {
  const auto copy = copy_with(kKrea2.folder, "padding_side", "left");
  EXPECT_THAT(message_of([&] { Engine({.model = copy}, {}); }),
              HasSubstr("'padding_side' should be right, it is left"));
}

// The reference reads 1024 tokens of a prompt and keeps the first ones.
TEST_F(TokenizerSides, OfQwenImageKeepTheBeginningOfAPrompt) {
  const auto embedded = [&](const std::string& side) {
    const Engine engine({.model = copy_with(small_pipeline("qwen-image"), "truncation_side", side),
                         .dtype = Dtype::kFloat32},
                        {});
    auto request = kSmallRequest;
    request.prompts = {"one red circle, two blue stars and a green ring above a pink square"};
    request.max_sequence_length = 9;
    return engine.generate(request, {}, {.record = RecordTensors::kYes})
        .facts.recording.at("prompt_embeds");
  };
  const auto kept = embedded("right");
  EXPECT_EQ(kept.size(1), 9);
  EXPECT_TRUE(at::equal(embedded("left"), kept));
}

}  // namespace braid::tokenizer_sides_test
