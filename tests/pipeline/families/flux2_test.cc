// FLUX.2 under every layout and form of its weights, on the random pipelines of tests/data/parity;
// parity_test.cc compares them with diffusers.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "edit_json.h"
#include "message_of.h"
#include "pipeline/conversion/convert.h"
#include "pipeline/deployment/degrees.h"
#include "pipeline/engine/engine.h"
#include "pipeline/files/found_files.h"
#include "pipeline/planner/named_job.h"
#include "pipeline/proofs/verify.h"
#include "predicted.h"
#include "small_model.h"

namespace braid::flux2_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

// 5 x 7 = 35 image tokens and 21 text tokens: no degree below divides both.
const Request kUneven{.prompts = {"a small red circle"},
                      .width = 112,
                      .height = 80,
                      .steps = 2,
                      .max_sequence_length = 21,
                      .seed = 3};

PipelineOptions options_of(const std::string& model, const Layout& layout = {},
                           const Memory& memory = {}) {
  return {.model = small_pipeline(model),
          .dtype = Dtype::kFloat32,
          .threads = degrees_of(layout).product(),  // the bits of sums depend on it
          .layout = layout,
          .memory = memory};
}

Recording run(const PipelineOptions& options, const Request& request = kUneven) {
  return Engine(options, {}).generate(request, {}, {.record = RecordTensors::kYes}).facts.recording;
}

// The same without weights elsewhere or in codes: once for the tests of a process.
const Tensor& plain_latents(const std::string& model) {
  static std::map<std::string, Tensor> latents;
  if (!latents.contains(model)) latents[model] = run(options_of(model)).at("latents_final");
  return latents.at(model);
}

struct NamedLayout {
  const char* name;
  const char* model;  // klein: 3 heads; klein-base: 5 heads, two branches; flux2-dev: 2 heads
  Layout layout;
};
const NamedLayout kLayouts[] = {
    {"Tp2WithText", "flux2-dev", {.tp = 2, .text = TextRanks::kShared}},
    {"Tp5", "klein-base", {.tp = 5}},
    {"Ring3", "klein", {.ring = 3}},
    {"Ulysses3", "klein-base", {.ulysses = 3}},
    {"Cfg2LayerSplit2", "klein-base", {.cfg = 2, .pp = 2}},
    {"Dp2", "klein", {.dp = 2}},
};
const NamedLayout kMoreLayouts[] = {
    {"Tp2", "flux2-dev", {.tp = 2}},
    {"Tp2WholeModulation", "flux2-dev", {.tp = 2, .modulation = SharedModulation::kNo}},
    {"Tp3", "klein", {.tp = 3}},
    {"Ring2Gathered", "klein-base", {.ring = 2, .ring_form = RingForm::kGather}},
    {"Ulysses2", "klein", {.ulysses = 2}},
    {"Ring2Ulysses2", "flux2-dev", {.ring = 2, .ulysses = 2}},
    {"Tp2Ring2", "flux2-dev", {.tp = 2, .ring = 2}},
    {"Cfg2", "klein-base", {.cfg = 2}},
    {"Cfg2Ulysses2", "klein-base", {.ulysses = 2, .cfg = 2}},
    {"LayerSplit3", "klein", {.pp = 3}},
    {"Tp2LayerSplit3", "flux2-dev", {.tp = 2, .pp = 3}},
};

class Flux2Layouts : public testing::TestWithParam<NamedLayout> {
 protected:
  // Several pictures only if ranks split them, or pass them along.
  static Request request() {
    auto request = kUneven;
    const auto& layout = GetParam().layout;
    if (layout.dp > 1 || layout.pp > 1) request.num_images = 3;
    return request;
  }
  static PipelineOptions options() { return options_of(GetParam().model, GetParam().layout); }
};
const auto kNameOf = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(All, Flux2Layouts, testing::ValuesIn(kLayouts), kNameOf);
INSTANTIATE_TEST_SUITE_P(Slow, Flux2Layouts, testing::ValuesIn(kMoreLayouts), kNameOf);

TEST_P(Flux2Layouts, EqualOneRank) {
  static std::map<std::pair<std::string, int>, Recording> of_one_rank;  // by model and pictures
  auto& one = of_one_rank[{GetParam().model, request().num_images}];
  if (one.empty()) one = run(options_of(GetParam().model), request());  // with one thread
  const auto got = run(options(), request());
  for (const auto* name : {"latents_initial", "sigmas", "timesteps"})
    EXPECT_TRUE(at::equal(got.at(name), one.at(name))) << name;
  for (const auto* name : {"prompt_embeds", "velocity_first", "latents_final"})
    EXPECT_LE(relative_error(got.at(name), one.at(name)), 1e-5) << name;
}

TEST_P(Flux2Layouts, AreProven) {
  const ProbeOptions probe{.width = 112, .height = 80, .max_sequence_length = 21};
  EXPECT_EQ(verify(deploy(options()), {.probe = probe}).first_divergent(), nullptr);
}

TEST_P(Flux2Layouts, MoveAndReadWhatIsPredicted) {
  auto options = this->options();
  const Engine engine(options, {});
  auto request = kUneven;
  request.num_images = GetParam().layout.dp;
  const auto facts = engine.generate(request, {}).facts;
  const auto job = job_of(deploy(options), request);
  const auto degrees = degrees_of(GetParam().layout);
  expect_predicted_traffic(job, degrees, facts);
  const auto files = find_model(options).files;
  auto want = stored_bytes_of_last_rank(job, files, degrees);
  if (job.layout.text == TextRanks::kShared) {  // the needed tensors and the token table
    const auto& text = job.family->part(Part::Role::kText);
    const auto stored = files.open(text.folder);
    const auto* const table = stored.find("language_model.model.embed_tokens.weight");
    const Stage all{.num_blocks = 30, .is_first = true, .is_last = true};
    want += stored_bytes(job, files, text, all, degrees.tp) + std::int64_t(table->view().nbytes());
  }
  EXPECT_EQ(facts.load.bytes_read.back().all, want);
}

TEST(Flux2, KeepsItsBitsWhereverItsWeightsAre) {
  for (const std::string model : {"klein", "flux2-dev"}) {
    const auto& resident = plain_latents(model);
    for (const auto mode : {OffloadMode::kModel, OffloadMode::kBlock, OffloadMode::kLeaf}) {
      const Memory memory{.offload = {.transformer = mode, .text = mode, .vae = mode}};
      const auto got = run(options_of(model, {}, memory)).at("latents_final");
      EXPECT_TRUE(at::equal(got, resident)) << model << " " << int(mode);
    }
  }
}

class Flux2Files : public testing::Test {
 protected:
  fs::path copy_of(const std::string& model) const {
    fs::copy(small_pipeline(model), folder_ / "copy", fs::copy_options::recursive);
    return folder_ / "copy";
  }
  static std::string refusal(const fs::path& model, std::vector<std::string>* warnings = nullptr) {
    const Hooks hooks{.warning = [&](const std::string& w) {
      if (warnings) warnings->push_back(w);
    }};
    return message_of([&] { (void)Engine({.model = model}, hooks); });
  }

  const TemporaryFolder folder_;
};

TEST_F(Flux2Files, AreConvertedToTheWeightsThatQuantizationHas) {
  const Memory int8{.quantize = Quantize::kInt8, .quantize_text = Quantize::kInt8};
  for (const std::string model : {"klein-base", "flux2-dev"}) {
    const auto plain = options_of(model);
    const auto quantized = run(options_of(model, {}, int8)).at("latents_final");
    EXPECT_GT(relative_error(quantized, plain_latents(model)), 0) << model;
    const auto out = folder_ / model;
    convert({.model = plain.model, .out = out, .dtype = Dtype::kFloat32, .memory = int8});
    auto converted = plain;
    converted.model = out;
    EXPECT_TRUE(at::equal(run(converted).at("latents_final"), quantized)) << model;
  }
}

TEST_F(Flux2Files, ServeAsOneFileToo) {
  for (const std::string model : {"klein", "flux2-dev"}) {
    const auto plain = options_of(model);
    auto single = plain;
    single.components = plain.model;
    single.model = folder_ / (model + ".safetensors");
    convert({.model = plain.model, .out = single.model, .form = ConvertOptions::Form::kSingleFile});
    const auto names = Checkpoint::open_file(single.model).tensors();
    EXPECT_TRUE(names.contains("single_stream_modulation.lin.weight"));
    EXPECT_TRUE(at::equal(run(single).at("latents_final"), plain_latents(model)));
    single.components = fs::path(BRAID_SOURCE_DIR) / "models/demo";
    EXPECT_THROW((void)Engine(single, {}), InputError);
  }
}

TEST_F(Flux2Files, AreRefusedWhereTheyDoNotFit) {
  const auto klein = copy_of("klein");
  const auto transformer = klein / "transformer/config.json";
  const auto text = klein / "text_encoder/config.json";
  const auto tried = [&](const fs::path& file, const char* key, const Json& value) {
    const auto before = read_file(file);
    edit_json(file, [&](Json& json) { json[key] = value; });
    const auto sentence = refusal(klein);
    write_file(file, before);
    return sentence;
  };
  EXPECT_EQ(refusal(klein), "");
  EXPECT_THAT(tried(transformer, "guidance_embeds", true), HasSubstr("should be false"));
  EXPECT_THAT(tried(transformer, "joint_attention_dim", 33), HasSubstr("makes 3 x 10"));
  EXPECT_THAT(tried(transformer, "_class_name", "FluxTransformer2DModel"),
              HasSubstr("should describe a Flux2Transformer2DModel"));
  EXPECT_THAT(tried(text, "num_hidden_layers", 20), HasSubstr("20 layers: there is no hidden"));
  EXPECT_THAT(tried(text, "model_type", "mistral"), HasSubstr("should be a Qwen3 model"));
  EXPECT_THAT(tried(text, "model_type", "llama"), HasSubstr("should be qwen3 or mistral"));
  EXPECT_THAT(tried(klein / "vae/config.json", "_class_name", "AutoencoderKL"),
              HasSubstr("needs an AutoencoderKLFlux2"));
  EXPECT_THAT(tried(klein / "scheduler/scheduler_config.json", "_class_name", "Other"),
              HasSubstr("Other"));
}

TEST_F(Flux2Files, NeedATokenizerWithTheTokensOfTheChat) {
  const auto klein = copy_of("klein");
  const auto file = klein / "tokenizer/tokenizer.json";
  auto text = read_file(file);
  for (auto at = text.find("<|im_start|>"); at != std::string::npos; at = text.find("<|im_start|>"))
    text.replace(at, 12, "<|im_begin|>");
  write_file(file, text);
  EXPECT_THAT(refusal(klein), HasSubstr("the tokenizer has no token <|im_start|>, which the chat"));
}

// The reference writes <s> by the chat's template and lets the tokenizer add nothing.
TEST_F(Flux2Files, OfDevNeedATokenizerThatBeginsAsTheTemplateDoes) {
  const auto dev = copy_of("flux2-dev");
  EXPECT_EQ(refusal(dev), "");
  edit_json(dev / "tokenizer/tokenizer.json", [](Json& json) { json["post_processor"] = nullptr; });
  EXPECT_THAT(refusal(dev), HasSubstr("should put <s> before a text and nothing else around it"));
}

TEST_F(Flux2Files, AreToldOfWhereTheirChatIsAnother) {
  std::vector<std::string> warnings;
  const auto klein = copy_of("klein");
  EXPECT_EQ(refusal(klein, &warnings), "");
  EXPECT_TRUE(warnings.empty());
  write_file(klein / "tokenizer/chat_template.jinja", "{{ messages }}");
  EXPECT_EQ(refusal(klein, &warnings), "");
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings.front(), HasSubstr("does not say <|im_start|>"));
}

// The reference follows what Braid would leave out. Published templates write only within their
// conditions and loops.
TEST_F(Flux2Files, AreToldOfChatsThatBeginWithMore) {
  const auto klein = copy_of("klein");
  const auto file = klein / "tokenizer/chat_template.jinja";
  const auto own = read_file(file);
  const auto warnings_with = [&](const std::string& text) {
    std::vector<std::string> warnings;
    fs::remove(file);
    write_file(file, text);
    EXPECT_EQ(refusal(klein, &warnings), "");
    return warnings;
  };
  for (const std::string more :
       {"{{- '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}", "Hello",
        "{%- if tools %}{{ '{% endif %}' }}{%- endif %}{{ '!' }}",
        "{%- set x = 1 %}{%- set y %}z{% endset %}{{ y }}"})
    EXPECT_THAT(warnings_with(more + own),
                testing::ElementsAre(HasSubstr("writes text before or behind all messages")))
        << more;
  EXPECT_EQ(warnings_with(own + "{{ 'more' }}").size(), 1u);
  for (const std::string no_more :
       {"{# Hello #}", "{%- set a = '}} %}' %}\n", "{%- macro f(x) %}{{ x }}{%- endmacro %}",
        "{%- if tools %}{{- '{\"a\": \\'}}\\'}' }}{%- elif a %}b{%- else %}{%- endif %}"})
    EXPECT_TRUE(warnings_with(no_more + own).empty()) << no_more;
}

// Counted on diffusers' and transformers' classes; for the text encoders, the layers that run.
TEST(Flux2, PublishedModelsHaveTheirParameters) {
  EXPECT_EQ(parameters_of_named("klein-4b", "transformer"), 3'875'544'576);
  EXPECT_EQ(parameters_of_named("klein-base-9b", "transformer"), 9'078'581'248);
  EXPECT_EQ(parameters_of_named("flux2-dev", "transformer"), 32'223'281'152);
  const auto layer = [](std::int64_t hidden, std::int64_t mlp, std::int64_t norms) {
    return hidden * 128 * (2 * 32 + 2 * 8) + 3 * hidden * mlp + 2 * hidden + norms;
  };
  EXPECT_EQ(parameters_of_named("klein-4b", "text_encoder"), 27 * layer(2560, 9728, 256));
  EXPECT_EQ(parameters_of_named("klein-9b", "text_encoder"), 27 * layer(4096, 12288, 256));
  EXPECT_EQ(parameters_of_named("flux2-dev", "text_encoder"), 30 * layer(5120, 32768, 0));
  EXPECT_EQ(job_of_family(named_family("klein-4b")).branches, 1);
  EXPECT_EQ(job_of_family(named_family("klein-base-4b")).branches, 2);
}

}  // namespace braid::flux2_test
