"""Texts that tokenizers get wrong: prompts in many scripts, and anything from letters to noise."""
import random
import unicodedata

SENTENCES = """
A photo of a red fox jumping over a sleeping dog, golden hour, 35mm, f/1.8, ultra-detailed.
an oil painting of the Eiffel Tower in winter -- by Claude Monet (1890), muted colours; soft light
I'll say it: they've won, we're late, he'd go, it's John's, don't, can't, I'm, THEY'LL, IT'S, O'Neil's
Portrait of a woman with blue eyes & curly hair, studio lighting, 8k, --ar 16:9 --v 5.2
(masterpiece:1.2), [best quality], {detailed}, <lora:style_v2:0.8>, cinematic #art @artist $100 50% off!
https://example.com/path?query=1&b=2#anchor user@mail.example C:\\Users\\x 3.14159e-10 0x1F 1,234,567.89
Le café près de l'île où Noël a été fêté; ça coûte 12,50 € à l'œuvre, garçon naïf, hôtel, Zoé, Élodie
Übergrößenträger aßen süße Äpfel in Köln; STRASSE, ẞ, Straße, „Anführungszeichen“ und ‚einfache‘
Zażółć gęślą jaźń. Łódź, Kraków, źdźbło, ŻÓŁW, ĄĘŚĆ
Příliš žluťoučký kůň úpěl ďábelské ódy; ŘÍJEN, ĎÁBEL, ťapka, Ľubovňa
El pingüino Wenceslao hizo kilómetros bajo exhaustiva lluvia: ¿qué? ¡ñandú! año, ª º
À noite, vovô Kowalsky vê o ímã cair no pé do pinguim queixoso; São João, coração
İstanbul'da ışık ve IĞDIR; Diyarbakır, çağ, şöyle, ÖĞÜN, iİıI
Tiếng Việt: Trời đất ơi, một con vịt xòe ra hai cái cánh; Nguyễn, Đặng, ưỡn, Ắ Ằ Ẳ Ẵ Ặ
Γειά σου Κόσμε! Ο ΟΔΥΣΣΕΥΣ και ο Οδυσσεύς, ΐ ΰ ᾳ ᾼ Ὀδυσσεύς ἄνθρωπος
Съешь же ещё этих мягких французских булок; ЁЛКА, йод, Їжак, Ґанок, ђ ћ љ
Щастя, здоров'я і об’єднання: під'їзд, м’ята
שלום עולם! הַשָּׁמַיִם וְאֵת הָאָרֶץ, "ציטוט" ־ שבת
مرحبا بالعالم، كيف حالك؟ السَّلَامُ عَلَيْكُمْ ٠١٢٣٤٥٦٧٨٩ ـــ لا
سلام دنیا؛ می‌خواهم کتاب‌ها را ببینم ۰۱۲۳۴۵۶۷۸۹ پچگژ
نستعلیق اردو میں لکھا ہوا ایک جملہ ہے۔
नमस्ते दुनिया! क्षत्रिय, ज्ञान, श्री, क़लम, ०१२३४५६७८९ ।
স্বাগতম বাংলা ভাষায় ক্ষ জ্ঞ ড় ঢ় য়
ਸਤ ਸ੍ਰੀ ਅਕਾਲ ਦੁਨੀਆ; ગુજરાતી ભાષા; ଓଡ଼ିଆ
தமிழ் மொழி: வணக்கம் உலகம், ஸ்ரீ, கொ கோ கௌ
తెలుగు భాష; ಕನ್ನಡ ನಾಡು; മലയാളം ൺ ൻ ർ ൽ ൾ; සිංහල
สวัสดีชาวโลก น้ำ กำลังดี ที่นี่ ๐๑๒๓ ฿100
ສະບາຍດີ ຊາວໂລກ ນ້ຳ; မြန်မာစာ ပါဠိ; ភាសាខ្មែរ ស្រី
བོད་སྐད་ཡིག་ ཀྱི ཧཱུྃ ༄༅།
გამარჯობა მსოფლიო; ᲒᲐᲛᲐᲠᲯᲝᲑᲐ; Բարեւ աշխարհ, և, ՈՒ
ሰላም ልዑል; ᎣᏏᏲ ᎡᎶᎯ ꭰꭱꭲ; ᐊᐃᓐᓄᒃᑎᑐᑦ
你好，世界！一只红色的狐狸跳过了懒狗。（画）「引号」《书名》——……
繁體中文：貓咪坐在窗臺上，陽光灑落；㐂㐀 𠀀𠮷𪚥 兀﨑
こんにちは世界。カタカナ ﾊﾝｶｸ ｶﾞｷﾞｸﾞ ひらがな ゔ ヷ ・ー ～ ㍿ ㌔ ㋿ ㍻
赤い狐が怠け者の犬を飛び越える、浮世絵風、高精細、葛󠄀城市
안녕하세요 세계! 한글 맞춤법 ㅋㅋㅋ ㄱㄴㄷ 가각간 뷁 힣
Mixed 漢字とkana와 한글 and العربية with עברית плюс ελληνικά
ＦＵＬＬＷＩＤＴＨ ｔｅｘｔ １２３ ！＂＃＄％ ＜／ｓ＞ ＜｜ｅｎｄｏｆｔｅｘｔ｜＞ ～
ﬁ ﬂ ﬀ ﬃ ﬅ ĳ Ǆ ǅ ǆ ½ ⅓ ² ³ ¹ ₂ ① ② ⑳ Ⅷ ⅷ ℃ ℉ № ™ © ® ℠ Å Ω K µ
x² + y² = z², √2 ≈ 1.41421, ∑ ∫ ∂ ∞ ≠ ≤ ≥ ± × ÷ → ⇒ ∀ ∃ ∈ ℝ ℵ
𝐁𝐨𝐥𝐝 𝑖𝑡𝑎𝑙𝑖𝑐 𝕯𝖔𝖚𝖇𝖑𝖊 𝒮𝒸𝓇𝒾𝓅𝓉 𝟘𝟙𝟚 🅰🅱 🄰 Ⓐ ⓐ ⒜ 🈁 🈂
""".strip().split("\n")

EMOJI = ["😀", "❤️", "❤", "👍🏽", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪🇫🇷", "🇺", "👨🏿‍🚀", "1️⃣", "#️⃣", "☠︎", "🫠", "🧑‍🎄", "©️", "™️", "🩷", "🫨"]
SPECIALS = ["<|endoftext|>", "<|startoftext|>", "</s>", "<pad>", "<unk>", "<s>", "<extra_id_0>", "<extra_id_3>", "<extra_id_99>",
            "<extra_id_100>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<think>", "</w>", "[INST]", "<0x41>", "lost", "norm-al"]
SPACES = [" ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", " \n ", "\v", "\f", "\x85", "\xa0", "\u1680", "\u2003", "\u2009", "\u2028",
          "\u2029", "\u202f", "\u205f", "\u3000", "\u200b", "\ufeff", "\u2060", "\u180e"]
ODD = ["\u200b", "\u200c", "\u200d", "\u200e", "\u200f", "\u2060", "\ufeff", "\u00ad", "\u2581", "\u2581\u2581", "\ufffd", "\u0000",
       "\u0001", "\u0008", "\u001f", "\u007f", "\u0080", "\u009f", "\ufffe", "\uffff", "\U0010ffff", "\ue000", "\U000e0001", "\U000e0041",
       "\ufe0f", "\u034f", "\u0300", "\u0301", "\u0327", "\u0328", "\u0345", "\u05b0", "\u064b", "\u093c", "\u0e33", "\u3099", "\u1abf",
       "\u1dfa", "\u20dd", "\u0600", "\u06dd", "\u070f", "\u115f", "\u1160", "\u11a8", "\uac00", "\uac01", "\u1100", "\u1161", "\ufb1d",
       "\u2126", "\u212b", "\u0958", "\u0f73", "\u0340", "\u0344", "\u0374", "\u037e", "\u0387", "\u1fef", "\u2000", "\uf900", "\ufa10"]
# Assigned after Unicode 9, 14 and 15: the reference's parts disagree about these.
LATER = ["\u32ff", "\ua7f2", "\uab69", "\ua7cb", "\ua7da", "\u1c89", "\U00010d50", "\U00016ea0", "\U000105d2\u0307", "\U00011935\U00011930",
         "\U00031350", "\U0002ebf0", "\U00011f04", "\U0001e4d0", "\U0001e030", "\U00010d40", "\u0cf3", "\u0ece", "a\u0897", "a\u1acf",
         "\u2427", "\u31ef", "\U0001fae8", "\U0001f6dc", "\U0001b132", "a\u1abf\u0301", "c\u0897\u0327", "\U000113d1a"]


def forms(text):
    """The same text as different code points."""
    yield from (unicodedata.normalize(form, text) for form in ("NFC", "NFD", "NFKC", "NFKD"))
    yield from (text.upper(), text.lower(), text.title(), text.swapcase())


def clusters():
    """Letters with marks, around the sizes at which T5's character map changes its behaviour."""
    marks = ["\u0301", "\u030a", "\u0327", "\u0308", "\u1ab0", "\u20dd", "\ufe0f", "\u200d", "\U000e0100", "\u093f"]
    for base in ["e", "A", "ﬁ", "ａ", "Å", "½", "ｶ", "你", "\r", "©", "क", "각", "\u0600"]:
        yield " ".join(base + a for a in marks)
        yield " ".join(base + a + b for a in marks[:5] for b in marks[:4]) + base


def long_words(rng):
    for n in (17, 77, 513, 3000):
        yield "a" * n
        yield "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(n))
    yield "1234567890" * 60
    yield "!?" * 300
    yield "我" * 700
    yield "😀" * 200
    yield "é" * 300 + "e\u0301" * 300
    yield "\u0301\u0327" * 150
    yield "the " * 700
    yield " " * 300 + "x" + " " * 300
    yield "\n" * 200
    yield "<|endoftext|>" * 90
    yield "</s>" * 90


def mixtures(rng, count):
    words = [w for s in SENTENCES for w in s.split()]
    parts = [SPECIALS, SPACES, ODD, EMOJI, LATER, words, words, words]
    for _ in range(count):
        yield "".join(rng.choice(rng.choice(parts)) for _ in range(rng.randint(1, 14)))


def noise(rng, count):
    blocks = [(0, 0x80), (0x80, 0x250), (0x250, 0x400), (0x400, 0x800), (0x900, 0x1000), (0x1000, 0x2000), (0x2000, 0x2C00),
              (0x2E80, 0x3400), (0xA000, 0xABFF), (0xF900, 0xFFFF), (0x10000, 0x12000), (0x16000, 0x17000), (0x1B000, 0x1E000),
              (0x1F000, 0x20000), (0xE0000, 0xE0200)]
    for _ in range(count):
        chosen = rng.sample(blocks, rng.randint(1, 3))
        yield "".join(chr(rng.randrange(*rng.choice(chosen))) for _ in range(rng.randint(1, 40)))


def prompts(rng, count):
    """Captions as typed by people."""
    subjects = ["a cat", "two astronauts", "an old lighthouse", "the city of Paris", "a bowl of ramen", "my grandmother's house", "a dragon"]
    styles = ["watercolor", "oil on canvas", "35mm photo", "pixel art", "low-poly 3D render", "ukiyo-e", "charcoal sketch", "neon noir"]
    extras = ["at night", "in the rain", "highly detailed", "by the sea", "with 3 red balloons", "4k", "wearing a hat", "f/2.8 bokeh"]
    for i in range(count):
        text = f"{rng.choice(subjects)} {rng.choice(extras)}, {rng.choice(styles)}, {rng.choice(extras)}"
        yield [text, text.capitalize() + ".", text.upper(), " ".join([text] * (1 + i % 9))][i % 4]


def corpus(seed=7):
    """All lines, in a fixed order."""
    rng = random.Random(seed)
    lines = ["", " ", "a", "\n", "\u2581", "</s>", "<|endoftext|>"] + SENTENCES + EMOJI + SPECIALS + ODD + LATER
    lines += [before + special + behind for special in SPECIALS for before, behind in
              (("x", "y"), ("a red ", " cube"), (" \u3000", "\t\n"), ("\u0301", "\u0301"))]
    lines += [special.upper() for special in SPECIALS]
    lines += [f"a{space}b{space}{space}c{space}" for space in SPACES]
    lines += list(dict.fromkeys(form for s in SENTENCES for form in forms(s)))
    lines += list(clusters()) + list(long_words(rng))
    lines += list(mixtures(rng, 150)) + list(noise(rng, 100)) + list(prompts(rng, 100))
    return [line for line in lines if not any(0xD800 <= ord(c) <= 0xDFFF for c in line)]
