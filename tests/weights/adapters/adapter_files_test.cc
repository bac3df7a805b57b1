// Adapter files: names, header metadata, and what is rejected.
#include "adapted_model.h"
#include "weights/codes/int8.h"

namespace braid::adapter_files_test {

using testing::HasSubstr;

TEST(AdapterKeys, AreTakenApart) {
  struct Row {
    const char *name, *module;
    AdapterRole role;
  };
  using Role = AdapterRole;
  for (const auto& [name, module, role] :
       {Row{"a.b.lora_A.weight", "a.b", Role::kDown},
        Row{"a.b.lora_A.default.weight", "a.b", Role::kDown},
        Row{"a.b.lora_B.default_0.weight", "a.b", Role::kUp},
        Row{"a.b.lora_B.bias", "a.b", Role::kUpBias},
        Row{"a_b.alpha", "a_b", Role::kAlpha},
        Row{"a_b.lora_down.weight", "a_b", Role::kDown},
        Row{"a_b.lora_up.weight", "a_b", Role::kUp},
        Row{"a.b.lora.down.weight", "a.b", Role::kDown},
        Row{"a.processor.qkv_lora1.up.weight", "a.processor.qkv_lora1", Role::kUp},
        Row{"a.ff.up.weight", "a.ff.up.weight", Role::kReplacement},
        Row{"a.ff.down.weight", "a.ff.down.weight", Role::kReplacement},
        Row{"a.lora_magnitude_vector", "a", Role::kMagnitude},
        Row{"a.lora_magnitude_vector.default.weight", "a", Role::kMagnitude},
        Row{"a.dora_scale", "a", Role::kMagnitude},
        Row{"a.lokr_w1", "a", Role::kLeft},
        Row{"a.lokr_w2_b", "a", Role::kRightDown},
        Row{"a.hada_w2_a", "a", Role::kSecondUp},
        Row{"a.diff", "a", Role::kDifference},
        Row{"a.diff_b", "a", Role::kBiasDifference},
        Row{"a.w_norm", "a", Role::kDifference},
        Row{"a.b_norm", "a", Role::kBiasDifference},
        Row{"a.set_weight", "a", Role::kWhole},
        Row{"a.lora_mid.weight", "a", Role::kCore},
        Row{"a.hada_t2", "a", Role::kSecondCore},
        Row{"a.lokr_t2", "a", Role::kRightCore},
        Row{"a.lora_A.my.adapter.weight", "a", Role::kDown},
        Row{"a.lora_B.my.adapter.bias", "a", Role::kUpBias},
        Row{"a.lora_magnitude_vector.v1.2.weight", "a", Role::kMagnitude},
        Row{"a.lora_magnitude_vector.v1.2", "a", Role::kMagnitude},
        Row{"a.hada_w1_a.default", "a", Role::kFirstUp},
        Row{"a.lokr_w1.my.adapter", "a", Role::kLeft},
        Row{"a.oft_R.default.weight", "a", Role::kUnreadable},
        Row{"a.oft_blocks.0", "a", Role::kUnreadable},
        Row{"a.lora_diag", "a", Role::kUnreadable},
        Row{"a.lora_diag.default", "a", Role::kUnreadable},
        Row{"a.lora_new.b.weight", "a", Role::kUnreadable},
        Row{"a.lora_A.bias", "a", Role::kUnreadable},
        Row{"a.lora_velora_embed", "a.lora_velora_embed", Role::kReplacement},
        Row{"lora_new", "lora_new", Role::kReplacement},
        Row{"a_b_.lora_down.weight", "a_b", Role::kDown},
        Row{"a_b__.alpha", "a_b", Role::kAlpha},
        Row{"a.norm.scale", "a.norm.scale", Role::kReplacement},
        Row{".alpha", ".alpha", Role::kReplacement},
        Row{"", "", Role::kReplacement}}) {
    const auto key = parse_adapter_key(name);
    EXPECT_EQ(key.module, module) << name;
    EXPECT_EQ(key.role, role) << name;
  }
  EXPECT_EQ(underscored("a.b_c.0"), "a_b_c_0");
}

// What torch.compile, FSDP, DDP and peft insert, anywhere in a name.
TEST(AdapterKeys, AreReadWithoutWrappers) {
  const auto module = [](const std::string& name) { return parse_adapter_key(name).module; };
  EXPECT_EQ(module("module.a._orig_mod.b.lora_A.default.weight"), "a.b");
  EXPECT_EQ(module("a._fsdp_wrapped_module._checkpoint_wrapped_module.b.diff"), "a.b");
  EXPECT_EQ(module("module.module.a.scale"), "a.scale");
  EXPECT_EQ(module("base_model.model.a.base_layer.bias"), "base_model.model.a.bias");
  EXPECT_EQ(module("submodule.a_module.alpha"), "submodule.a_module");
  EXPECT_EQ(module("module.alpha"), "alpha");
}

// The members of a checkpoint that hold its denoiser, and peft's model before or behind them.
TEST(AdapterNames, OfDenoisersAreThoseOfCheckpointsToo) {
  const auto names = denoiser_adapter_names({});
  const std::string peft = "base_model.model.";
  for (const std::string member : {"", "model.diffusion_model.", "diffusion_model.", "transformer.",
                                   "model.", "unet.", "dit.", "net."})
    for (const auto& prefix : {member, peft + member, member + peft})
      EXPECT_EQ(std::ranges::count(names.prefixes, prefix), 1) << prefix;
  for (const auto* const prefix : {"lora_unet_", "lora_transformer_", "lycoris_", "pipe.dit."})
    EXPECT_EQ(std::ranges::count(names.prefixes, prefix), 1) << prefix;
}

using AdapterFiles = AdaptedModel;

TEST(AdapterNames, OfNothingAreRefused) {
  for (const auto* const name : {"/nope.safetensors", "/nope", "nope.safetensors"})
    EXPECT_EQ(message_of([&] { (void)adapter_in(name); }),
              std::string("there is no adapter at ") + name);
  EXPECT_EQ(message_of([] { (void)adapter_in(""); }), "an adapter has an empty name");
}

TEST_F(AdapterFiles, NameWhatTheModelDoesNotHave) {
  const Tensors tensors = {{"a.lora_A.weight", at::randn({3, 6})},
                           {"a.lora_B.weight", at::randn({16, 3})},
                           {"b.alpha", at::ones({})},
                           {"elsewhere.lora_A.weight", at::randn({3, 6})},
                           {"text_model.a.lora_A.weight", at::randn({3, 6})}};
  (void)all(load({{.file = write(tensors)}}));
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_THAT(warnings_[0],
              HasSubstr("2 tensors that the model has no use for: 'b.alpha', 'elsewhere.lora_A"));
}

TEST_F(AdapterFiles, ThatLookLikeThoseOfAnotherModelAreSaidTo) {
  const auto down = at::randn({3, 6}), up = at::randn({16, 3});
  const Tensors own = {{"a.lora_A.weight", down}, {"a.lora_B.weight", up}};
  const Tensors other = {{"z.lora_A.weight", down}, {"z.lora_B.weight", up}};
  auto both = own;
  both.insert(other.begin(), other.end());
  for (const std::string likeness : {"", "it looks like a LoRA for a toy"}) {
    likeness_ = likeness;
    const auto words = likeness.empty() ? "'" : "; " + likeness;
    warnings_.clear();
    (void)all(load({{.file = write(own)}}));
    EXPECT_TRUE(warnings_.empty());
    (void)all(load({{.file = write(both)}}));
    ASSERT_EQ(warnings_.size(), 1u);
    EXPECT_THAT(warnings_[0], testing::EndsWith(words));
    EXPECT_THAT(refusal(other), testing::EndsWith(likeness.empty() ? "is the first" : words));
    const auto after = [&](const std::string& shape) {
      return testing::EndsWith(shape + (likeness.empty() ? "" : words));
    };
    EXPECT_THAT(refusal({{"a.lora_A.weight", at::ones({3, 7})}, {"a.lora_B.weight", up}}),
                after("the model's a.weight is [16, 6]"));
    EXPECT_THAT(refusal({{"a.lora_A.weight", down},
                         {"a.lora_B.weight", up},
                         {"a.dora_scale", at::ones({5, 1})}}),
                after("its shape is [5, 1]"));
    EXPECT_THAT(refusal({{"a.lora_A.weight", at::full({3, 6}, NAN)}, {"a.lora_B.weight", up}}),
                testing::Not(HasSubstr("looks like")))
        << "its widths fit";
  }
}

TEST_F(AdapterFiles, ThatChangeNothingAreRefused) {
  const auto down = at::randn({3, 6}), up = at::randn({16, 3});
  EXPECT_THAT(refusal({{"z.lora_A.weight", down}, {"z.lora_B.weight", up}}),
              HasSubstr("changes nothing of this model"));
  EXPECT_THAT(refusal({{"a.weight", at::randn({16, 6})}}), HasSubstr("is not a LoRA"));
  EXPECT_THAT(refusal({}), HasSubstr("is not a LoRA"));
  // the layer is there, but not what these scale
  for (const std::string name : {"a.alpha", "a.dora_scale", "a.lora_magnitude_vector"})
    EXPECT_THAT(refusal({{name, at::ones({16})}}),
                HasSubstr("'a' lacks one of the tensors that belong together: the file has '" +
                          name + "' without the factors"));
  // for another part only: this one must stay silent
  EXPECT_EQ(refusal({{"text_model.a.lora_A.weight", down}}), "");
}

TEST_F(AdapterFiles, ThatDoNotFitAreRefused) {
  const auto down = at::randn({3, 6}), up = at::randn({16, 3});
  const auto nan = at::full({16, 3}, NAN);
  const auto pair = [](const Tensor& b, const Tensor& a) {
    return Tensors{{"a.lora_A.weight", a}, {"a.lora_B.weight", b}};
  };
  const auto with = [&](const std::string& name, const Tensor& tensor) {
    auto tensors = pair(up, down);
    tensors[name] = tensor;
    return tensors;
  };
  EXPECT_THAT(refusal(pair(up, at::randn({4, 6}))), HasSubstr("two factors of one rank"));
  EXPECT_THAT(refusal(pair(up, at::randn({3, 7}))), HasSubstr("is for a weight of [16, 7]"));
  EXPECT_THAT(refusal(pair(at::randn({15, 3}), down)), HasSubstr("is for a weight of [15, 6]"));
  EXPECT_THAT(refusal(pair(nan, down)), HasSubstr("'a.lora_B.weight' holds numbers that are not"));
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble}) {
    EXPECT_EQ(refusal(pair(up, at::full({3, 6}, 65000, dtype))), "") << dtype;
    for (const double number : {NAN, INFINITY, -INFINITY}) {
      const auto one = down.to(dtype).clone();
      one[2][5] = number;
      EXPECT_THAT(refusal(pair(up, one)), HasSubstr("numbers that are not finite")) << dtype;
    }
  }
  EXPECT_THAT(refusal(pair(up, down.to(at::kInt))), HasSubstr("floating-point"));
  EXPECT_THAT(refusal(pair(up, down.flatten())), HasSubstr("should be a matrix"));
  EXPECT_THAT(refusal(pair(at::randn({16, 0}), at::randn({0, 6}))),
              HasSubstr("should be a matrix"));
  EXPECT_THAT(refusal({{"a.lora_A.weight", down}}), HasSubstr("lacks one of the tensors"));
  EXPECT_THAT(refusal(with("a.alpha", at::ones({2}))),
              HasSubstr("should be one number, its shape is [2]"));
  EXPECT_THAT(refusal(with("a.alpha", at::full({}, INFINITY))), HasSubstr("not finite"));
  EXPECT_THAT(refusal(with("a.dora_scale", at::ones({6}))), HasSubstr("for each of 16 outputs"));
  EXPECT_THAT(refusal(with("a.dora_scale", at::ones({1, 16}))),
              HasSubstr("a magnitude for each of 16 outputs or 6 inputs, its shape is [1, 16]"));
  EXPECT_THAT(refusal(with("a.lora_up.weight", up)), HasSubstr("are the same part of one module"));
  EXPECT_THAT(refusal(with("n.scale", at::ones({7}))), HasSubstr("[7, 1]"));
  EXPECT_THAT(refusal({{"a.lokr_w1", at::ones({2, 2})}, {"a.lokr_w2", at::ones({2, 2})}}),
              HasSubstr("is for a weight of [4, 4]"));
  EXPECT_THAT(message_of([&] { open_adapters({{.file = write({}), .scale = NAN}}); }),
              HasSubstr("scale"));
}

TEST_F(AdapterFiles, ReplaceWholeTensors) {
  const auto a = at::randn({4, 6}), bias = at::randn({8}), m = at::randn({8, 6});
  const auto b = at::randn({6, 16});
  const auto got = all(load({{.file = write({{"transformer.x.0.to_k.weight", a},
                                             {"base_model.model.x.0.to_m.base_layer.bias", bias},
                                             {"x.norm.weight", m},
                                             {"b.set_weight", b},
                                             {"a.alpha", at::ones({})}})}}));
  EXPECT_TRUE(at::equal(got.at("a.weight").narrow(0, 4, 4), a));
  EXPECT_TRUE(at::equal(got.at("a.weight").narrow(0, 0, 4), base_.at("a.weight").narrow(0, 0, 4)));
  EXPECT_TRUE(at::equal(got.at("a.bias").narrow(0, 8, 8), bias));
  EXPECT_TRUE(at::equal(got.at("m.weight"), m.roll({4}, {0})));
  EXPECT_TRUE(at::equal(got.at("b.weight"), b));
  EXPECT_THAT(refusal({{"b.set_weight", at::randn({6, 15})}}), HasSubstr("[6, 15]"));
}

TEST_F(AdapterFiles, ChangeNormsUnderAnyName) {
  const auto n = at::randn({6});
  for (const std::string name : {"n.diff", "n.w_norm", "n.scale.diff", "n.weight.diff"})
    expect_added({{.file = write({{name, n}}), .scale = 0.5}}, {{"n.weight", 0.5 * n}});
  for (const std::string name : {"n.set_weight", "n.scale.set_weight"})
    expect_added({{.file = write({{name, n}})}}, {{"n.weight", n - base_.at("n.weight")}});
}

TEST_F(AdapterFiles, OfKindsThatCannotBeAppliedAreRefused) {
  const Tensors lora = {{"a.lora_down.weight", at::randn({3, 6})},
                        {"a.lora_up.weight", at::randn({16, 3})}};
  const std::pair<std::string, std::string> kinds[] = {
      {"b.oft_blocks", "OFT"},
      {"b.oft_R.default.weight", "OFT"},
      {"m.lokr_t1", "LoKr with a Tucker decomposition of its first factor"},
      {"b.a1.weight", "GLoRA"},
      {"a.lora_E", "AdaLoRA"},
      {"a.lora_diag", "KaSA"},
      {"a.lora_new", "LoRA with a part that is not known"}};
  for (const auto& [name, kind] : kinds) {
    auto tensors = lora;
    tensors[name] = at::ones({3, 3});
    EXPECT_THAT(refusal(tensors), HasSubstr("'" + name + "' is of the kind " + kind +
                                            ", which Braid cannot apply: it applies LoRA, DoRA"));
  }
  for (const std::string name : {"a.hada_w1_a", "a.lokr_w1", "a.diff", "a.set_weight"}) {
    auto tensors = lora;
    tensors[name] = at::ones({3, 3});
    EXPECT_THAT(refusal(tensors), HasSubstr("'a' should be of one kind of adapter")) << name;
  }
}

TEST_F(AdapterFiles, MayHavePartsThatServeOnlyTraining) {
  const auto down = at::randn({3, 6}), up = at::randn({16, 3});
  expect_added({{.file = write({{"a.lora_A.weight", down},
                                {"a.lora_B.weight", up},
                                {"a.lora_velora_embed", at::ones({6})},
                                {"a.lora_monteclora_sampler.expert_weights", at::ones({4})}})}},
               {{"a.weight", up.mm(down)}});
  ASSERT_FALSE(warnings_.empty());
  EXPECT_THAT(warnings_.back(), HasSubstr("2 tensors that the model has no use for"));
}

// The model lacks some of the layers, one is spelled like sd-scripts', and an alpha stands beside.
TEST_F(AdapterFiles, OfNothingThatCanBeAppliedAreNamed) {
  for (const auto& [name, kind] : {std::pair("transformer.y.oft_R.weight", "OFT"),
                                   {"transformer.y.boft_R.default", "BOFT"},
                                   {"oft_unet_y_linear1.oft_blocks.0", "OFT"},
                                   {"y.ia3_l", "IA3"},
                                   {"lycoris_y.on_input", "IA3"},
                                   {"y.vera_lambda_b", "VeRA"}}) {
    const auto said = refusal({{name, at::ones({4, 28})}, {"y.alpha", at::ones({})}});
    EXPECT_THAT(said, HasSubstr("holds an adapter of the kind " + std::string(kind) + ", as '" +
                                name + "' tells, which Braid cannot apply: it applies LoRA"));
    EXPECT_TRUE(is_adapter(Checkpoint::open_file(folder_ / "lora.safetensors")));
  }
  EXPECT_THAT(refusal({{"y.weight", at::ones({3})}}), HasSubstr("is not a LoRA"));
}

TEST_F(AdapterFiles, OfPeftsOtherKindsAreNamedByTheirConfiguration) {
  const auto file = write({{"base_model.model.a.bone_block", at::ones({4, 4})}}, "adapter_model");
  const auto refusal_by = [&](const std::string& config) {
    write_file(folder_ / "adapter_config.json", config);
    return message_of([&] { open_adapters({{.file = file}}); });
  };
  EXPECT_THAT(
      refusal_by(R"({"peft_type": "BONE"})"),
      HasSubstr("is not a LoRA: it is of peft's kind BONE, as its adapter_config.json says"));
  for (const std::string config : {R"({"peft_type": "LORA"})", R"({"peft_type": 7})", "{}", "[]"})
    EXPECT_THAT(refusal_by(config), HasSubstr("none of its 1 tensors is named like")) << config;
}

// peft saves an adapter with a name of its own in a folder of that name.
TEST_F(AdapterFiles, InFoldersBelowAreNamed) {
  const auto refusal_of_folder = [&] {
    return message_of([&] { open_adapters({{.file = folder_ / "named"}}); });
  };
  const auto put = [&](const std::string& name) {
    fs::create_directories(folder_ / "named" / name);
    write({{"a.diff", at::ones({16, 6})}}, "named/" + name + "/adapter_model");
  };
  put("my");
  fs::create_directories(folder_ / "named/empty");
  EXPECT_THAT(refusal_of_folder(), HasSubstr("a LoRA that Braid reads: its folder my has one"));
  put("b");
  EXPECT_THAT(refusal_of_folder(), HasSubstr("2 of its folders have one, such as b"));
}

// b has 10 inputs in the models most adapters are for.
TEST_F(AdapterFiles, ForFewerInputsLeaveTheOthers) {
  const auto down = at::randn({2, 10}), up = at::randn({6, 2}), m = at::rand({6}) + 0.5;
  const Tensors tensors = {{"b.lora_A.weight", down}, {"b.lora_B.weight", up}};
  const auto change = at::constant_pad_nd(up.mm(down), {0, 6});
  expect_added({{.file = write(tensors)}}, {{"b.weight", change}});
  expect_added({{.file = write({{"b.diff", up.mm(down)}})}}, {{"b.weight", change}});
  const Weights w(source({{.file = write(tensors)}}, AdapterMode::kUnmerged), {});
  const auto b = (w / "b").matrix("weight", {6, 16});
  for (const auto* const layer : {"a", "m", "n"}) (w / layer).skip();
  w.finish();
  EXPECT_TRUE(at::allclose(b.low_rank->up_NR.mm(b.low_rank->down_RC), change));
  EXPECT_THAT(refusal({{"b.lora_A.weight", at::randn({2, 9})}, {"b.lora_B.weight", up}}),
              HasSubstr("is for a weight of [6, 9]"));
  EXPECT_THAT(refusal({{"b.set_weight", at::randn({6, 10})}}), HasSubstr("[6, 10]"));
}

// Only what the model has counts: trainers store notes of their own, too.
TEST_F(AdapterFiles, OfRequestsMayNotChangeNorms) {
  const Weights w(source({}, AdapterMode::kUnmerged), {});
  const auto a = (w / "a").matrix("weight", {16, 6});
  (void)(w / "n").tensor("weight", {6});
  const auto switch_to = [&](const std::string& name, std::int64_t size) {
    const auto file = write({{"a.lora_A.weight", at::randn({3, 6})},
                             {"a.lora_B.weight", at::randn({16, 3})},
                             {name, at::ones({size})}});
    return message_of([&] {
      unmerged_->switch_to(open_adapters({{.file = file}}),
                           [&](const std::string& warning) { warnings_.push_back(warning); });
    });
  };
  for (const std::string name : {"n.diff", "n.scale", "n.scale.diff", "n.set_weight"}) {
    EXPECT_THAT(switch_to(name, 6), HasSubstr("changes biases or norms, as by '" + name + "'"));
    EXPECT_FALSE(a.has_low_rank());
  }
  EXPECT_EQ(switch_to("bundle_emb.sks", 5), "");
  EXPECT_TRUE(a.has_low_rank());
  EXPECT_THAT(warnings_.back(), HasSubstr("no use for: 'bundle_emb.sks'"));
}

TEST_F(AdapterFiles, StandBesideCodes) {
  const auto codes = quantize_rows(base_.at("a.weight"), Quantize::kInt8);
  write_file(folder_ / "m.safetensors", write_safetensors({{"a.weight", codes.values_NC},
                                                           {"a.weight_scale", codes.scales_N1}}));
  const auto up = at::randn({16, 3}), down = at::randn({3, 6});
  const auto file = write({{"a.lora_A.weight", down}, {"a.lora_B.weight", up}});
  const Weights w(source({{.file = file}}), {.quantize = Quantize::kInt8});
  const auto got = (w / "a").matrix("weight", {16, 6});
  w.finish();
  EXPECT_TRUE(at::equal(got.values_NC, codes.values_NC));
  EXPECT_TRUE(at::equal(got.low_rank->up_NR.mm(got.low_rank->down_RC), up.mm(down)));
  const Weights fused(source({{.file = file}}, AdapterMode::kFused), {});
  EXPECT_THAT(message_of([&] {
                (fused / "a").matrix("weight", {16, 6});
              }),
              HasSubstr("stored in 8 bits"));
  const auto dora =
      write({{"a.lora_A.weight", down}, {"a.lora_B.weight", up}, {"a.dora_scale", at::ones({16})}});
  const auto of_inputs = write(
      {{"a.lora_A.weight", down}, {"a.lora_B.weight", up}, {"a.dora_scale", at::ones({1, 6})}},
      "of_inputs");
  const auto lokr =
      write({{"a.lokr_w1", at::ones({4, 2})}, {"a.lokr_w2", at::ones({4, 3})}}, "lokr");
  for (const auto mode : {AdapterMode::kAuto, AdapterMode::kFused})
    for (const auto& more : {dora, of_inputs, lokr}) {
      const Weights refused(source({{.file = more}}, mode), {});
      EXPECT_THAT(message_of([&] {
                    (refused / "a").matrix("weight", {16, 6});
                  }),
                  testing::AllOf(HasSubstr("changes the weight of a by more than a product"),
                                 HasSubstr("is stored in 8 bits"),
                                 HasSubstr("into the unquantized model (`braid convert`)")));
    }
}

}  // namespace braid::adapter_files_test
