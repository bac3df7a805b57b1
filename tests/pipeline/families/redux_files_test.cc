// A Redux directory belongs to a transformer and an encoder: one of other widths, or whose pictures
// are prepared otherwise, is refused before any weights are read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "edit_json.h"
#include "message_of.h"
#include "pipeline/families/family.h"
#include "pipeline/files/found_files.h"
#include "temporary_folder.h"

namespace braid::redux_files_test {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

const fs::path kModel = fs::path(BRAID_SOURCE_DIR) / "tests/data/parity/redux/model";
constexpr const char* kPrepared = "feature_extractor/preprocessor_config.json";

class ReduxFiles : public testing::Test {
 protected:
  ReduxFiles() { fs::copy(kModel / "redux", redux(), fs::copy_options::recursive); }
  fs::path redux() const { return folder_ / "redux"; }

  // The refusal of a copy in whose file `name` the field at `pointer` is `value`.
  std::string refusal(const std::string& name, const std::string& pointer, const Json& value) {
    const auto original = read_file(redux() / name);
    edit_json(redux() / name, [&](Json& json) { json[Json::json_pointer(pointer)] = value; });
    const auto message = refusal_as_it_is();
    write_file(redux() / name, original);
    return message;
  }
  std::string refusal_as_it_is() const {
    return message_of(
        [&] { (void)open_family(find_model({.model = kModel, .redux = redux()}).files); });
  }

  TemporaryFolder folder_;
};

TEST_F(ReduxFiles, AreTakenAsPublished) {
  EXPECT_EQ(refusal_as_it_is(), "");
  fs::remove(redux() / kPrepared);
  EXPECT_EQ(refusal_as_it_is(), "") << "the encoder's own size is known";
}

// FluxPriorReduxPipeline embeds 512 tokens for FLUX.1-schnell, too, whose own prompts have 256.
TEST_F(ReduxFiles, HaveTheLengthOfTheReferencesPrompts) {
  const auto model = folder_.path() / "model";
  fs::copy(kModel, model, fs::copy_options::recursive);
  for (const auto& [file, key] :
       {std::pair{"transformer/config.json", "guidance_embeds"},
        std::pair{"scheduler/scheduler_config.json", "use_dynamic_shifting"}})
    edit_json(model / file, [key = key](Json& json) { json[key] = false; });
  const auto defaults = [&](const fs::path& redux) {
    const auto family = open_family(find_model({.model = model, .redux = redux}).files);
    return family->description().limits.defaults;
  };
  EXPECT_EQ(defaults({}).max_sequence_length, 256);
  EXPECT_EQ(defaults(redux()).max_sequence_length, 512);
  EXPECT_EQ(defaults(redux()).steps, 4);
}

// transformers looks into processor_config.json first.
TEST_F(ReduxFiles, AreReadFromTheProcessorsFileWhereThatHasThem) {
  const auto path = redux() / "feature_extractor/processor_config.json";
  write_file(path, R"({"processor_class": "any"})");
  EXPECT_EQ(refusal_as_it_is(), "");
  write_file(path, R"({"image_processor": {"resample": 2}})");
  EXPECT_THAT(refusal_as_it_is(), HasSubstr("'resample'"));
}

TEST_F(ReduxFiles, OfOtherWidthsAreRefused) {
  EXPECT_THAT(refusal("image_embedder/config.json", "/redux_dim", 32),
              AllOf(HasSubstr(redux().string()), HasSubstr("pictures of width 32"),
                    HasSubstr("the encoder makes 24")));
  EXPECT_THAT(refusal("image_embedder/config.json", "/txt_in_features", 24),
              AllOf(HasSubstr(redux().string()), HasSubstr("makes text of width 24"),
                    HasSubstr("the transformer takes 16")));
}

// Pictures are resized bicubically to the encoder's size and normalised to -1 .. 1, whatever a file
// says.
TEST_F(ReduxFiles, OfOtherPreparationsAreRefused) {
  for (const auto& [pointer, value] :
       std::map<std::string, Json>{{"/image_mean", {0.48, 0.46, 0.41}},
                                   {"/image_std", {0.27, 0.26, 0.28}},
                                   {"/do_resize", false},
                                   {"/do_rescale", false},
                                   {"/rescale_factor", 0.01},
                                   {"/do_normalize", false},
                                   {"/resample", 2},
                                   {"/size/height", 32},
                                   {"/size/width", 32}}) {
    const auto field = pointer.substr(pointer.rfind('/') + 1);
    EXPECT_THAT(refusal(kPrepared, pointer, value), HasSubstr("'" + field + "'")) << pointer;
  }
  for (const std::string step : {"do_resize", "do_rescale", "do_normalize"})  // null: not done
    EXPECT_THAT(refusal(kPrepared, "/" + step, nullptr),
                HasSubstr("'" + step + "' should be true"));
}

}  // namespace braid::redux_files_test
