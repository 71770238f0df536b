import { expect, test } from "vitest";
import { timestampText } from "@/lib/provider/timestamp-text";

test.each([
  ["2026-05-01", "2026-05-01"],
  ["2024-06-28 18:42:46.561408+00:00", "2024-06-28T18:42:46.561408Z"],
  ["2024-06-28T18:42:46Z", "2024-06-28T18:42:46Z"],
  ["2024-06-28T18:42:46.000Z", "2024-06-28T18:42:46Z"],
  ["2024-06-28T18:42:46.120000-05:00", "2024-06-28T23:42:46.12Z"],
  ["2024-06-28T18:42:46+0530", "2024-06-28T13:12:46Z"],
  ["2024-12-31T23:30:00-02", "2025-01-01T01:30:00Z"],
  ["2024-06-28T18:42", "2024-06-28T18:42:00Z"],
  ["2024-02-29", "2024-02-29"],
])("the time %s is stored as %s", (wire, stored) => expect(timestampText(wire)).toBe(stored));

test.each(["", "soon", "NaN", "2024-02-30", "2023-02-29", "2024-13-01", "0000-01-01", "2024-06-28T24:00:00Z"])(
  "%j is no date, so there is none",
  (wire) => expect(timestampText(wire)).toBeNull(),
);
test.each([
  "2024-06-28T18:60:00Z",
  "2024-06-28T18:42:46+99:00",
  "06/28/2024",
  "1719600166",
  "0001-01-01T00:00:00+14:00",
])("%j is no time, so there is none", (wire) => expect(timestampText(wire)).toBeNull());
