import fc from "fast-check";

/** JSON texts of objects as any writer might put them: odd numbers, escapes, white space, repeated and odd keys. */
export function jsonObjectText(): fc.Arbitrary<string> {
  const space = fc.constantFrom("", "", "", " ", "\n", "\t", "\r\n  ");
  const number = fc.oneof(
    fc.constantFrom(
      "0",
      "-0",
      "-0.0",
      "5.0",
      "1e16",
      "1E+16",
      "1e-7",
      "0.0001",
      "0.00001",
      "1e400",
      "-1e400",
      "1e-400",
    ),
    fc.bigInt().map(String),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
    fc
      .tuple(fc.integer(), fc.nat({ max: 99_999 }), fc.integer({ min: -330, max: 330 }))
      .map(([a, b, e]) => `${a}.${b}e${e}`),
  );
  const character = fc.oneof(
    fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
    fc.constantFrom(
      '"',
      "\\",
      "/",
      "\b",
      "\f",
      "\n",
      "\r",
      "\t",
      "\0",
      "\x1f",
      "\x7f",
      "\x80",
      "\u2028",
      "\ufeff",
      "ﬀ",
      "😀",
    ),
    fc.integer({ min: 0xd800, max: 0xdfff }).map((unit) => String.fromCharCode(unit)),
  );
  const string = fc.tuple(fc.array(character, { maxLength: 8 }), fc.boolean()).map(([characters, escaped]) => {
    const written = JSON.stringify(characters.join(""));
    return escaped
      ? written.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16)}`.padEnd(6, "0"))
      : written;
  });
  const key = fc.oneof(string, fc.constantFrom('"a"', '"b"', '"10"', '"9"', '"__proto__"', '"constructor"', '""'));

  return fc.letrec<{ value: string; object: string }>((tie) => ({
    value: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      number,
      string,
      fc.constantFrom("null", "true", "false"),
      fc
        .array(fc.tuple(space, tie("value"), space), { maxLength: 4 })
        .map((items) => `[${items.map((i) => i.join("")).join(",")}]`),
      tie("object"),
    ),
    object: fc
      .array(fc.tuple(space, key, space, fc.constant(":"), space, tie("value"), space), { maxLength: 6 })
      .map((members) => `{${members.map((m) => m.join("")).join(",")}}`),
  })).object;
}
