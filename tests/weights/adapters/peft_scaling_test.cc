// How peft's configurations scale adapters: in a file's header, or beside it.
#include "adapted_model.h"

namespace braid::peft_scaling_test {

using testing::AllOf, testing::HasSubstr;

class PeftScalings : public AdaptedModel {
 protected:
  // Expects this LoRA of one layer to be added so many times under a configuration.
  void expect_scaled(const std::string& config, double factor) {
    expect_added({{.file = write_with(config, tensors_)}},
                 {{"a.weight", rows_joined(0, factor * up_.mm(down_), 12)}});
  }

  const Tensor up_ = at::randn({4, 4}), down_ = at::randn({4, 6});
  const Tensors tensors_ = {{"transformer.x.0.to_q.lora_A.weight", down_},
                            {"transformer.x.0.to_q.lora_B.weight", up_}};
};

TEST_F(PeftScalings, TakeAlphasFromPeftsConfiguration) {
  expect_scaled(R"({\"transformer.lora_alpha\": 2, \"transformer.r\": 4})", 0.5);
  expect_scaled(R"({\"transformer.lora_alpha\": 2, \"transformer.use_rslora\": true})", 1);
  expect_scaled(R"({\"transformer.lora_alpha\": 2, \"transformer.alpha_pattern\": {\"to_q\": 12}})",
                3);
  expect_scaled(R"({\"transformer.lora_alpha\": 2, \"transformer.alpha_pattern\": {\"o_q\": 12}})",
                0.5);
  expect_scaled(R"({\"transformer.lora_alpha\": 0, \"transformer.r\": 4})", 0);
  expect_scaled(R"({\"text_encoder.lora_alpha\": 2})", 1);
  // peft's alpha is 8 if nobody says otherwise
  expect_scaled(R"({\"transformer.r\": 4})", 2);
  expect_scaled(R"({\"transformer.alpha_pattern\": {\"to_q\": 12}})", 3);
  expect_scaled(R"({\"transformer.alpha_pattern\": {\"to_k\": 12}})", 2);
  expect_scaled(R"({\"lora_alpha\": 2})", 1);  // for names without a prefix
  expect_added({{.file = write_with(R"({\"transformer.lora_alpha\": 2})", tensors_,
                                    R"(\u005f_metadata__)")}},
               {{"a.weight", rows_joined(0, 0.5 * up_.mm(down_), 12)}});
  for (const std::string config :
       {R"({\"transformer.alpha_pattern\": {\"to_.*\": 12}})",
        R"({\"transformer.lora_alpha\": \"2\"})", R"([1])", R"({)",
        R"({\"transformer.use_rslora\": 1})", R"({\"transformer.alpha_pattern\": []})"})
    EXPECT_THAT(message_of([&] { open_adapters({{.file = write_with(config, tensors_)}}); }),
                HasSubstr("lora_adapter_metadata"))
        << config;
}

TEST_F(PeftScalings, TakePeftsPatternsOfWholeNames) {
  expect_scaled(
      R"({\"transformer.lora_alpha\": 2, \"transformer.alpha_pattern\": {\"^x.0.to_q\": 12}})", 3);
  expect_scaled(
      R"({\"transformer.lora_alpha\": 2, \"transformer.alpha_pattern\": {\"^to_q\": 12}})", 0.5);
  expect_scaled(
      R"({\"transformer.lora_alpha\": 2, \"transformer.alpha_pattern\": {\"0.to_q\": 12}})", 3);
  // what peft does not set it writes as null
  expect_scaled(R"({\"transformer.lora_alpha\": 2, \"transformer.alpha_pattern\": null, )"
                R"(\"transformer.use_rslora\": null, \"transformer.peft_type\": null})",
                0.5);
}

TEST_F(PeftScalings, NameNumbersThatAreNotFinite) {
  for (const std::string field : {"use_rslora", "alpha_pattern", "lora_alpha"}) {
    const auto file = write_with(R"({\"transformer.)" + field + R"(\": -Infinity})", tensors_);
    EXPECT_THAT(message_of([&] { open_adapters({{.file = file}}); }), HasSubstr("it is -Infinity"))
        << field;
  }
}

// Diffusers' save_lora_adapter() writes such files.
TEST_F(PeftScalings, MayHaveNeitherPrefixesNorPartsInTheirConfiguration) {
  const auto up = at::randn({4, 4}), down = at::randn({4, 6});
  const Tensors tensors = {{"x.0.to_q.lora_A.weight", down}, {"x.0.to_q.lora_B.weight", up}};
  expect_added({{.file = write_with(R"({\"lora_alpha\": 2, \"r\": 4})", tensors)}},
               {{"a.weight", rows_joined(0, 0.5 * up.mm(down), 12)}});
}

// CLIP's modules are in one of this name, in files and in patterns.
TEST_F(PeftScalings, KnowModulesByTheirWholeNames) {
  const auto up = at::randn({4, 4}), down = at::randn({4, 6});
  const Tensors tensors = {{"transformer.text_model.x.0.to_q.lora_A.weight", down},
                           {"transformer.text_model.x.0.to_q.lora_B.weight", up}};
  for (const std::string pattern : {"text_model.x.0.to_q", "^text_model.x.0.to_q", "x.0.to_q"})
    expect_added({{.file = write_with(R"({\"transformer.lora_alpha\": 2,)"
                                      R"( \"transformer.alpha_pattern\": {\")" +
                                          pattern + R"(\": 12}})",
                                      tensors)}},
                 {{"a.weight", rows_joined(0, 3 * up.mm(down), 12)}});
}

// The folders peft itself writes.
TEST_F(PeftScalings, TakeAlphasFromTheConfigurationBesideThem) {
  const auto up = at::randn({16, 4}), down = at::randn({4, 6});
  const auto file =
      write({{"base_model.model.a.lora_A.weight", down}, {"base_model.model.a.lora_B.weight", up}},
            "adapter_model");
  expect_added({{.file = file}}, {{"a.weight", up.mm(down)}});
  ASSERT_FALSE(warnings_.empty());
  EXPECT_THAT(warnings_.back(), HasSubstr("lies without its adapter_config.json"));
  warnings_.clear();
  write_file(folder_ / "adapter_config.json", R"({"r": 4, "lora_alpha": 12, "alpha_pattern": {}})");
  expect_added({{.file = file}}, {{"a.weight", 3 * up.mm(down)}});
  write_file(folder_ / "adapter_config.json", R"({"lora_alpha": "12"})");
  EXPECT_THAT(message_of([&] { open_adapters({{.file = file}}); }), HasSubstr("adapter_config"));
}

// peft's names begin with its wrapper, the pipeline's part or nothing.
TEST_F(PeftScalings, TakeThatConfigurationUnderEveryPrefixOfPefts) {
  const auto up = at::randn({16, 4}), down = at::randn({4, 6});
  write_file(folder_ / "adapter_config.json", R"({"r": 4, "lora_alpha": 8})");
  const auto pair = [&](const std::string& prefix, const std::string& a, const std::string& b) {
    return write({{prefix + "a." + a, down}, {prefix + "a." + b, up}}, "adapter_model");
  };
  for (const std::string prefix : {"base_model.model.", "transformer.", ""})
    expect_added({{.file = pair(prefix, "lora_A.weight", "lora_B.weight")}},
                 {{"a.weight", 2 * up.mm(down)}});
  EXPECT_TRUE(warnings_.empty()) << warnings_[0];
  // nor is it the alpha of what another program has written under that name
  for (const std::string prefix : {"lora_unet_", ""}) {
    warnings_.clear();
    expect_added({{.file = pair(prefix, "lora_down.weight", "lora_up.weight")}},
                 {{"a.weight", up.mm(down)}});
    EXPECT_THAT(warnings_, testing::ElementsAre(HasSubstr("peft has no names like"))) << prefix;
  }
  const auto scaled = write({{"lora_unet_a.lora_down.weight", down},
                             {"lora_unet_a.lora_up.weight", up},
                             {"lora_unet_a.alpha", at::full({}, 2.0)}},
                            "adapter_model");
  warnings_.clear();
  expect_added({{.file = scaled}}, {{"a.weight", 0.5 * up.mm(down)}});
  EXPECT_TRUE(warnings_.empty()) << warnings_[0];
}

// peft takes the product at the beginning out of the base's weights, which an adapter alone does
// not tell.
TEST_F(PeftScalings, AreOfAdaptersThatLeaveTheBaseAsItIs) {
  const auto up = at::randn({16, 4}), down = at::randn({4, 6});
  const auto file =
      write({{"base_model.model.a.lora_A.weight", down}, {"base_model.model.a.lora_B.weight", up}},
            "adapter_model");
  const auto write_beginning = [&](const std::string& beginning) {
    write_file(folder_ / "adapter_config.json",
               R"({"r": 4, "lora_alpha": 4, "init_lora_weights": )" + beginning + "}");
  };
  for (const std::string beginning :
       {"true", "false", "null", R"("gaussian")", R"("orthogonal")", R"("eva")"}) {
    write_beginning(beginning);
    expect_added({{.file = file}}, {{"a.weight", up.mm(down)}});
  }
  for (const std::string beginning : {R"("pissa")", R"("pissa_niter_16")", R"("olora")",
                                      R"("OLoRA")", R"("corda")", R"("loftq")", R"("lora_ga")"}) {
    write_beginning(beginning);
    EXPECT_THAT(message_of([&] { open_adapters({{.file = file}}); }),
                AllOf(HasSubstr("adapter_config.json: 'init_lora_weights' is '"),
                      HasSubstr("changes the base's weights")))
        << beginning;
  }
  write_file(folder_ / "adapter_config.json", R"({"kasa_config": {"beta": 1e-4}, "r": 4})");
  EXPECT_THAT(message_of([&] { open_adapters({{.file = file}}); }),
              HasSubstr("adapter_config.json: 'kasa_config' is of KaSA, which changes the base's"));
  write_file(folder_ / "adapter_config.json", R"({"kasa_config": null, "lora_alpha": 4})");
  expect_added({{.file = file}}, {{"a.weight", up.mm(down)}});
  const auto diffusers =
      write_with(R"({\"transformer.init_lora_weights\": \"pissa\"})",
                 {{"transformer.a.lora_A.weight", down}, {"transformer.a.lora_B.weight", up}});
  EXPECT_THAT(message_of([&] { open_adapters({{.file = diffusers}}); }),
              HasSubstr("lora_adapter_metadata: 'init_lora_weights' is 'pissa'"));
}

TEST_F(PeftScalings, AreOfFactorsThatAreOnlyMultiplied) {
  const auto up = at::randn({16, 2}), down = at::randn({2, 6});
  const auto file =
      write({{"base_model.model.a.lora_A.weight", down}, {"base_model.model.a.lora_B.weight", up}},
            "adapter_model");
  const auto write_field = [&](const std::string& field, const std::string& value) {
    write_file(folder_ / "adapter_config.json",
               R"({"lora_alpha": 2, ")" + field + "\": " + value + "}");
  };
  for (const auto& [field, value] : {std::pair("layer_replication", "[[0, 4], [2, 5]]"),
                                     {"use_qalora", "true"},
                                     {"use_bdlora", R"({"nblocks": 2})"},
                                     {"alora_invocation_tokens", "[7]"},
                                     {"arrow_config", R"({"top_k": 3})"},
                                     {"trainable_token_indices", "[1, 2]"},
                                     {"trainable_token_indices", R"({"embed_tokens": [0]})"}}) {
    write_field(field, value);
    EXPECT_THAT(message_of([&] { open_adapters({{.file = file}}); }),
                AllOf(HasSubstr(std::string("adapter_config.json: '") + field + "' "),
                      HasSubstr("Braid cannot apply it")));
    for (const auto* const none : {"null", "[]", "{}", "false"}) {
      write_field(field, none);
      expect_added({{.file = file}}, {{"a.weight", up.mm(down)}});
    }
  }
  for (const auto* const flag : {"use_dora", "use_rslora"}) {
    write_field(flag, "1");
    EXPECT_THAT(message_of([&] { open_adapters({{.file = file}}); }),
                HasSubstr("should be true or false, it is 1"));
  }
  const auto diffusers =
      write_with(R"({\"transformer.use_qalora\": true})",
                 {{"transformer.a.lora_A.weight", down}, {"transformer.a.lora_B.weight", up}});
  EXPECT_THAT(message_of([&] { open_adapters({{.file = diffusers}}); }),
              HasSubstr("lora_adapter_metadata: 'use_qalora'"));
}

// peft's LoHa and LoKr keep their alpha under another name, and LoKr's rank may be told by nothing
// else: peft scales whole factors, too.
TEST_F(PeftScalings, ScalePeftsHadamardAndKroneckerProductsAsPeft) {
  const auto w1 = at::randn({4, 2}), w2 = at::randn({4, 3}), up = at::randn({4, 2}),
             down = at::randn({2, 3});
  const std::string a = "base_model.model.a.";
  const auto whole = write({{a + "lokr_w1", w1}, {a + "lokr_w2", w2}}, "adapter_model");
  const auto expect = [&](const std::string& config, const fs::path& file, const Tensor& change) {
    write_file(folder_ / "adapter_config.json", config);
    expect_added({{.file = file}}, {{"a.weight", change}});
  };
  const auto kron = at::kron(w1, w2);
  expect(R"({"peft_type": "LOKR", "r": 64, "alpha": 16})", whole, kron / 4);
  expect(R"({"peft_type": "LOKR"})", whole, kron);
  expect(R"({"peft_type": "LOKR", "r": 4, "alpha": 6, "rank_pattern": {"a": 3, "b": 5}})", whole,
         2 * kron);
  expect(R"({"peft_type": "LORA", "r": 64, "lora_alpha": 16})", whole, kron);
  write_file(folder_ / "adapter_config.json", R"({"peft_type": "LOKR", "r": 0})");
  EXPECT_THAT(message_of([&] { open_adapters({{.file = whole}}); }), HasSubstr("positive"));
  const auto product =
      write({{a + "lokr_w1", w1}, {a + "lokr_w2_a", up}, {a + "lokr_w2_b", down}}, "adapter_model");
  expect(R"({"peft_type": "LOKR", "r": 2, "alpha": 6})", product, 3 * at::kron(w1, up.mm(down)));
  const auto b1 = at::randn({16, 2}), a1 = at::randn({2, 6}), b2 = at::randn({16, 2}),
             a2 = at::randn({2, 6});
  const auto loha = write(
      {{a + "hada_w1_a", b1}, {a + "hada_w1_b", a1}, {a + "hada_w2_a", b2}, {a + "hada_w2_b", a2}},
      "adapter_model");
  expect(R"({"peft_type": "LOHA", "r": 2, "alpha": 5})", loha, 2.5 * b1.mm(a1) * b2.mm(a2));
}

TEST(PeftConfigs, RefuseRanksThatAreNotPositive) {
  const auto refusal = [](const std::string& fields) {
    return message_of(
        [&] { (void)read_peft_config(R"({"peft_type":"LOKR",)" + fields + "}", "c.json"); });
  };
  EXPECT_EQ(refusal(R"("r":2,"rank_pattern":{"a":1})"), "");
  EXPECT_THAT(refusal(R"("r":2,"rank_pattern":{"a":0})"),
              HasSubstr("rank of 'a' should be positive"));
  EXPECT_THAT(refusal(R"("r":-1)"), HasSubstr("'r' should be positive, it is -1"));
}

}  // namespace braid::peft_scaling_test
