import { createHmac } from "node:crypto";

/** Signed texts made with Python, key `test-consumer-key-0123456789`. */
export const VECTOR_KEY = "test-consumer-key-0123456789";

export const VECTOR_A = {
  wire: '{"webhookId": "312a13f3-3929-46dd-a70f-ade6aaefc100", "clientId": "PARTNERAPP", "eventTimestamp": "2026-09-01T14:38:13.111991+00:00", "userId": "user-42", "eventType": "ACCOUNT_HOLDINGS_UPDATED", "webhookSecret": "yfqvPlWrTFILBcjCERPh", "accountId": "45a3f56a-eef6-4904-a68e-d3f90c3e07c5", "brokerageId": "905872ac-a7b1-4031-a31f-790cba1bfc94", "brokerageAuthorizationId": "6bb1a0b0-b8c8-4b59-8bf9-7841d7a89c63", "details": {"total_value": {"success": true, "error": null}, "positions": {"success": true, "error": null}, "balances": {"success": false, "error": "Délai dépassé"}, "orders": {"success": true, "error": null}}}',
  signature: "G6/cVi+6MYJOCA21cZbT1Jg7JxAl+5JwMbONyZJMFGY=",
  wrong: [
    "dPQtquMrmwsXELLktYdlqyMo/jTRvM9QabjnjkUa+I0=",
    "yEdkoV+m/ZqzVwo1/R9nTFsyGLPn97Bg0EgzDzriRgg=",
    "Dp1uEqa2/OXQFQ7WEVyVz+lK/SnpWLRlnxCm0xQVijI=",
  ],
};

export const VECTOR_B = {
  wire: '{"webookId": "763bc1cd-8aca-4896-8faa-e84b82f8f7b2", "webhookId": "763bc1cd-8aca-4896-8faa-e84b82f8f7b2", "eventType": "TRADE_DETECTION", "eventTimestamp": "2026-09-01T18:52:08.123974+00:00", "userId": "\\u00fcser/\\u00e9 \\ud83d\\ude42", "clientId": "PARTNERAPP", "accountId": null, "details": {"z": [1, 1.0, -0.0, 0.1, 1e-05, 0.0001, 1e+16, 1e+21, 123456789012345678901234567890, 12345678901234567, 1.5e+300, 100.0], "10": "ten", "9": "nine", "a": {"b": {"d": 4, "c": 3}}, "text": "tab\\tnl\\nquote\\"back\\\\slash/ del\\u007f nul\\u0000 \\u2028 \\u65e5\\u672c\\u8a9e \\ud83d\\ude80", "empty": {}, "list": [], "flag": false, "\\ufb00": 1, "\\ud83d\\ude00": 2, "Z": 3, "\\u00e9": 4}}',
  signature: "Le84SRrUWnuRYLbeKTUZpf+dao66dB6G8tnQ79zoCzM=",
  wrong: ["bFJPiiKjdX4H8kZCJ49y6E+dGUkY9XK3UuG8Z4JFIcc=", "48YyrIq4pmfuMQMwfUndrlwQ6e+2u36AL15/XB37WAQ="],
};

export const VECTOR_C = {
  wire: '{"accountId":"ad4202bb-eaf7-4c7c-a176-e8406612b1ca","clientId":"PARTNERAPP","details":{"detection_lag_seconds":5.0,"orders":[]},"eventTimestamp":"2026-09-01T18:52:08.123974+00:00","eventType":"TRADE_DETECTION","userId":"user-42","webhookId":"763bc1cd-8aca-4896-8faa-e84b82f8f7b2","webookId":"6963bc1c-8bca-4896-8faa-e84b82f8f7b2"}',
  signature: "0uLoaUhTMpwuzIs2J2MA0M0pxerbEpFHZ4BFvmKdOkU=",
  wrong: ["i9C8aVZvIhYaCnGpjlr260UPP7iSo7BlcLqZsqQ6+qA="],
};

/** Key `test-consumer-key`: what a plain sort and stringify gets wrong, one thing each. */
export const SHORT_VECTOR_KEY = "test-consumer-key";
export const SHORT_VECTORS = [
  {
    name: "key order",
    wire: '{"webhookId":"w-1","eventType":"ACCOUNT_HOLDINGS_UPDATED","accountId":"a-1","eventTimestamp":"2026-01-02T03:04:05.678901+00:00"}',
    signature: "bogrg97YQ1t5G9y7PudCluARMH2DCPjrpkleOK6uD/4=",
  },
  {
    name: "floats",
    wire: '{"webhookId":"w-3","details":{"detection_lag_seconds":5.0,"qty":1e16,"tiny":1e-7}}',
    signature: "1a54Bfb19oyJA+5nwIWjgaq7JvUZQ4G/KfUWTgOoVHc=",
  },
  {
    name: "an integer above 2^53",
    wire: '{"webhookId":"w-6","n":9007199254740993}',
    signature: "8kJku4o9fW1ngadMhNMRmq2bNG0mW8zLU2be7I1aDj4=",
  },
];

export function hmacOf(text: string | Uint8Array, key: string): string {
  return createHmac("sha256", key).update(text).digest("base64");
}
