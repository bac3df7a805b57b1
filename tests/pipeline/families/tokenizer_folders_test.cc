// Which tokenizer reads prompts where a model has two: with pictures, diffusers' pipelines read
// with the processor's.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "edit_json.h"
#include "joy_model.h"
#include "message_of.h"
#include "pipeline/families/family.h"
#include "pipeline/files/found_files.h"
#include "small_models.h"
#include "temporary_folder.h"

namespace braid::tokenizer_folders_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path kEdit = small_pipeline("qwen-image-edit"),
               kEditPlus = small_pipeline("qwen-image-edit-plus");

Request edit_request() {
  auto request = joy_request();
  request.steps = 2;
  request.guidance = 1;
  return request;
}

class TokenizerFolders : public testing::Test {
 protected:
  fs::path copy_of(const fs::path& model) {
    const auto copy = folder_ / std::to_string(copies_++);
    fs::create_directory(copy);
    for (const auto& part : fs::directory_iterator(model))
      fs::copy(part.path(), copy / part.path().filename(), fs::copy_options::recursive);
    return copy;
  }
  // A copy whose tokenizer in one folder counts its vocabulary backwards.
  fs::path with_other_numbers(const fs::path& model, const char* folder) {
    const auto copy = copy_of(model);
    edit_json(copy / folder / "tokenizer.json", [](Json& json) {
      auto& vocabulary = json["model"]["vocab"];
      for (auto& number : vocabulary)
        number = std::int64_t(vocabulary.size()) - 1 - number.get<std::int64_t>();
    });
    return copy;
  }
  static Tensor embedded(const fs::path& model, const Request& request) {
    return recorded_latents(joy_with({}, {}, model), request).at("prompt_embeds");
  }

  TemporaryFolder folder_;
  int copies_ = 0;
};

using SlowTokenizerFolders = TokenizerFolders;

// parity_test.cc compares the embeddings with diffusers'. Other editing models declare theirs as
// these do, which AreThoseThatPromptsAreCountedWith sees.
TEST_F(SlowTokenizerFolders, AreTheProcessorsWherePicturesAreRead) {
  for (const auto& model : {kEditPlus, kJoy / "model"}) {
    const auto usual = embedded(model, edit_request());
    EXPECT_TRUE(at::equal(embedded(with_other_numbers(model, "tokenizer"), edit_request()), usual));
    EXPECT_FALSE(
        at::equal(embedded(with_other_numbers(model, "processor"), edit_request()), usual));
  }
}

TEST_F(TokenizerFolders, OfJoyEditAreTheTokenizersWithoutPictures) {
  auto request = edit_request();
  request.pictures.references.clear();
  const auto model = kJoy / "model";
  const auto usual = embedded(model, request);
  EXPECT_FALSE(at::equal(embedded(with_other_numbers(model, "tokenizer"), request), usual));
  EXPECT_TRUE(at::equal(embedded(with_other_numbers(model, "processor"), request), usual));
}

TEST_F(SlowTokenizerFolders, AreTheTokenizersWhereAProcessorHasNone) {
  const auto copy = copy_of(kEditPlus);
  fs::remove(copy / "processor/tokenizer.json");
  fs::remove(copy / "processor/tokenizer_config.json");
  EXPECT_TRUE(at::equal(embedded(copy, edit_request()), embedded(kEditPlus, edit_request())));
}

TEST_F(TokenizerFolders, AreThoseThatPromptsAreCountedWith) {
  const auto tokenizer_of = [](const fs::path& model) {
    return open_family(find_model({.model = model}).files)->prompt_readers().front().tokenizer;
  };
  EXPECT_EQ(tokenizer_of(kEdit), "processor");
  EXPECT_EQ(tokenizer_of(kEditPlus), "processor");
  EXPECT_EQ(tokenizer_of(plus_in(folder_.path())), "processor");
  EXPECT_EQ(tokenizer_of(kJoy / "model"), "tokenizer") << "of prompts without pictures";
}

TEST_F(TokenizerFolders, HaveTheTextEncodersMarkOfAPicture) {
  for (const auto& model : {kEdit, kJoy / "model", small_pipeline("qwen21")}) {
    const auto copy = copy_of(model);
    std::int64_t start = 0;
    edit_json(copy / "text_encoder/config.json", [&](Json& json) {
      start = json["vision_start_token_id"];
      json["image_token_id"] = start;
    });
    EXPECT_THAT(message_of([&] { Engine(joy_with({}, {}, copy), {}); }),
                HasSubstr("processor: the tokenizer's token <|image_pad|> should be the text "
                          "encoder's 'image_token_id', " +
                          std::to_string(start)));
  }
}

}  // namespace braid::tokenizer_folders_test
